//! Instructions as text.

use iced_x86::{
    Decoder, DecoderOptions, Formatter, GasFormatter, Instruction, IntelFormatter, MemorySizeOptions, Mnemonic,
};

/// How assemblers write instructions. Both are written as GNU's objdump does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Syntax {
    /// `mov eax,DWORD PTR [rdi+0x4]`: the destination first, as in the processor's manuals.
    #[default]
    Intel,
    /// `mov 0x4(%rdi),%eax`: the destination last, as GNU tools write it by default.
    Att,
}

/// Writes instructions in one syntax.
pub struct Disassembler {
    formatter: Box<dyn Formatter>,
    syntax: Syntax,
}

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
        options.set_rip_relative_addresses(true);
        options.set_show_branch_size(false);
        options.set_memory_size_options(MemorySizeOptions::Always);
        options.set_uppercase_keywords(true);
        options.set_always_show_scale(syntax == Syntax::Intel);
        options.set_show_zero_displacements(true);
        Disassembler { formatter, syntax }
    }

    /// The instruction at `pc` with these bytes; `(bad)` for what is none.
    pub fn text(&mut self, pc: u64, code: &[u8]) -> String {
        let decoded: Instruction = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode();
        if decoded.is_invalid() {
            return "(bad)".to_owned();
        }
        let mut text = String::new();
        self.formatter.format(&decoded, &mut text);
        if self.syntax == Syntax::Att && is_wide_by_nature(decoded.mnemonic()) {
            // Newer GNU tools leave the suffix out where there is no other size.
            text = text.replacen("q ", " ", 1);
        }
        text
    }
}

/// Whether in 64-bit code it works on 8 bytes unless a prefix says otherwise.
fn is_wide_by_nature(mnemonic: Mnemonic) -> bool {
    matches!(mnemonic, Mnemonic::Call | Mnemonic::Jmp | Mnemonic::Push | Mnemonic::Pop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_syntaxes_say_the_same_in_their_own_order() {
        let texts =
            |code: &[u8]| [Syntax::Intel, Syntax::Att].map(|syntax| Disassembler::new(syntax).text(0x40_1000, code));
        assert_eq!(texts(&[0x8b, 0x47, 0x04]), ["mov eax,DWORD PTR [rdi+0x4]", "mov 0x4(%rdi),%eax"]);
        assert_eq!(texts(&[0x74, 0x0e]), ["je 0x401010"; 2]);
        assert_eq!(texts(&[0xff, 0x35, 2, 0, 0, 0]), ["push QWORD PTR [rip+0x2]", "push 0x2(%rip)"]);
        assert_eq!(texts(&[0x06]), ["(bad)", "(bad)"]);
    }
}
