//! Where a conditional branch can go, taken or not, read from its code bytes.

use iced_x86::{Decoder, DecoderOptions};
use trace_format::{Block, Kind, Pc};

/// The two ways of the block's instruction of this index: taken, and to the next instruction. None where it is no
/// conditional branch, or its bytes are not known.
pub(crate) fn ways(block: &Block, index: usize) -> Option<[Pc; 2]> {
    let instruction = &block.instructions[index];
    if instruction.kind != Kind::Branch {
        return None;
    }
    let bytes = block.code.get(block.code_range(index)).filter(|bytes| !bytes.is_empty())?;
    let decoded = Decoder::with_ip(64, bytes, instruction.pc.0, DecoderOptions::NONE).decode();
    // What ended a block is not always what its bytes say now: a branch of another form, or none, has no direct target.
    (decoded.len() == bytes.len() && decoded.near_branch_target() != 0)
        .then(|| [Pc(decoded.near_branch_target()), Pc(decoded.next_ip())])
}

#[cfg(test)]
mod tests {
    use trace_format::{Instruction, SpEffect};

    use super::*;

    fn block(kind: Kind, code: &[u8]) -> Block {
        let instruction = Instruction { pc: Pc(0x1000), len: code.len() as u8, kind, sp: SpEffect::Add(0), memory: 0 };
        Block { instructions: vec![instruction], code: code.to_vec(), ..Block::default() }
    }

    #[test]
    fn short_and_near_branches_lead_both_ways() {
        // je +0x10; jne -0x100 (the displacement counts from the next instruction).
        assert_eq!(ways(&block(Kind::Branch, &[0x74, 0x10]), 0), Some([Pc(0x1012), Pc(0x1002)]));
        let near = [0x0F, 0x85, 0x00, 0xFF, 0xFF, 0xFF];
        assert_eq!(ways(&block(Kind::Branch, &near), 0), Some([Pc(0xF06), Pc(0x1006)]));
        // loop -2: to itself.
        assert_eq!(ways(&block(Kind::Branch, &[0xE2, 0xFE]), 0), Some([Pc(0x1000), Pc(0x1002)]));
    }

    #[test]
    fn what_is_no_conditional_branch_has_no_ways() {
        assert_eq!(ways(&block(Kind::Jump, &[0xEB, 0x10]), 0), None);
        assert_eq!(ways(&block(Kind::Branch, &[]), 0), None);
        assert_eq!(ways(&block(Kind::Branch, &[0x90]), 0), None);
    }
}
