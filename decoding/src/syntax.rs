//! Instructions as text.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Instruction, IntelFormatter};

/// How assemblers write instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Syntax {
    /// `mov eax,[rdi+4]`: the destination first, as in the processor's manuals.
    #[default]
    Intel,
    /// `mov 4(%rdi),%eax`: the destination last, as GNU tools write it by default.
    Att,
}

/// Writes instructions in one syntax.
pub struct Disassembler(Box<dyn Formatter>);

impl Disassembler {
    /// One for this syntax.
    #[must_use]
    pub fn new(syntax: Syntax) -> Disassembler {
        let mut formatter: Box<dyn Formatter> = match syntax {
            Syntax::Intel => Box::new(IntelFormatter::new()),
            Syntax::Att => Box::new(GasFormatter::new()),
        };
        let options = formatter.options_mut();
        options.set_hex_prefix("0x");
        options.set_hex_suffix("");
        options.set_uppercase_hex(false);
        options.set_branch_leading_zeros(false);
        options.set_small_hex_numbers_in_decimal(false);
        Disassembler(formatter)
    }

    /// The instruction at `pc` with these bytes; `(bad)` for what is none.
    pub fn text(&mut self, pc: u64, code: &[u8]) -> String {
        let decoded: Instruction = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode();
        if decoded.is_invalid() {
            return "(bad)".to_owned();
        }
        let mut text = String::new();
        self.0.format(&decoded, &mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_syntaxes_say_the_same_in_their_own_order() {
        let texts =
            |code: &[u8]| [Syntax::Intel, Syntax::Att].map(|syntax| Disassembler::new(syntax).text(0x40_1000, code));
        assert_eq!(texts(&[0x8b, 0x47, 0x04]), ["mov eax,[rdi+0x4]", "mov 0x4(%rdi),%eax"]);
        assert_eq!(texts(&[0x74, 0x0e]), ["je short 0x401010", "je 0x401010"]);
        assert_eq!(texts(&[0x06]), ["(bad)", "(bad)"]);
    }
}
