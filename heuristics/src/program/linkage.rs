//! Stubs of the linkage table: code that only jumps on through a slot in memory.
//!
//! A program calls a function of another module by a stub of its own (`.plt`), which jumps to the address that the
//! loader wrote into a slot. Compiled with `-fno-plt` the same call jumps through the slot itself. So a stub is a part
//! of the call and no function. Stubs are known by their instructions, since linkers give them different forms and
//! sections:
//!
//! ```text
//! jmp *slot                                    GNU ld, gold, lld; .plt.got; iplt
//! endbr64; (bnd) jmp *slot                     .plt.sec
//! endbr64; mov $n, %r11d; jmp *slot            mold
//! mov slot, %r11; jmp *%r11                    instead of an indirect jump through memory
//! (endbr64;) push $n; (bnd) jmp header         a slot that is not bound yet, then
//! (push %r11;) push slot; (bnd) jmp *slot      the header of the table
//! jmp stub                                     a function that only calls another one at its end
//! ```

use machine::x86_64::stub::{Piece, piece};
use rustc_hash::FxHashMap;
use trace_format::{BlockTable, Pc};

/// What a stub does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stub {
    /// It jumps on.
    Jumps,
    /// It calls the loader, to bind a slot that is used for the first time.
    Binds,
}

/// The instructions of a program that can be pieces of stubs.
pub(crate) struct Pieces(FxHashMap<Pc, Piece>);

/// More than any stub with the header of its table has.
const MOST_PIECES: usize = 12;

impl Pieces {
    /// Those of all blocks whose code is known.
    pub(crate) fn of(blocks: &BlockTable) -> Pieces {
        let mut pieces = FxHashMap::default();
        for (_, block) in blocks.iter().filter(|(_, block)| !block.code.is_empty()) {
            let mut code = &block.code[..];
            for instruction in &block.instructions {
                let (own, rest) = code.split_at(usize::from(instruction.len).min(code.len()));
                code = rest;
                if let Some(piece) = piece(instruction.pc, own) {
                    pieces.insert(instruction.pc, piece);
                }
            }
        }
        Pieces(pieces)
    }

    /// What begins at this address, where that is a stub or the rest of one.
    pub(crate) fn stub(&self, at: Pc) -> Option<Stub> {
        let (mut at, mut loaded, mut stub) = (at, false, Stub::Jumps);
        for _ in 0..MOST_PIECES {
            at = match self.0.get(&at) {
                None => return None,
                Some(Piece::Pushes(next)) => {
                    stub = Stub::Binds;
                    *next
                }
                Some(Piece::Prepares(next)) => *next,
                Some(Piece::Loads(next)) => {
                    loaded = true;
                    *next
                }
                Some(Piece::JumpsThroughSlot) => return Some(stub),
                Some(Piece::JumpsThroughR11) => return loaded.then_some(stub),
                Some(Piece::JumpsTo(target)) => *target,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use trace_format::{Block, Instruction, Kind, SpEffect};

    use super::*;

    /// Code at 0x1000 and so on, one block per instruction.
    fn pieces(code: &[&[u8]]) -> Pieces {
        let mut blocks = BlockTable::default();
        let mut pc = 0x1000;
        for bytes in code {
            let len = bytes.len() as u8;
            let instruction = Instruction { pc: Pc(pc), len, kind: Kind::Plain, sp: SpEffect::Add(0), memory: 0 };
            blocks.push(Block { instructions: vec![instruction], code: bytes.to_vec(), ..Block::default() });
            pc += bytes.len() as u64;
        }
        Pieces::of(&blocks)
    }

    const ENDBR: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const JUMP: &[u8] = &[0xff, 0x25, 0x10, 0x20, 0, 0];
    const BND_JUMP: &[u8] = &[0xf2, 0xff, 0x25, 0x10, 0x20, 0, 0];
    const INDEX: &[u8] = &[0x41, 0xbb, 3, 0, 0, 0];

    #[test]
    fn the_forms_of_all_linkers_are_stubs() {
        for (code, what) in [
            (&[JUMP][..], "GNU ld"),
            (&[ENDBR, BND_JUMP], ".plt.sec"),
            (&[ENDBR, INDEX, JUMP], "mold"),
            (&[&[0x4c, 0x8b, 0x1d, 1, 0, 0, 0], &[0x41, 0xff, 0xe3]], "through r11"),
            (&[&[0x68, 0, 0, 0, 0], &[0xe9, 0, 0, 0, 0], &[0xff, 0x35, 2, 0, 0, 0], JUMP], "not bound yet"),
            (&[ENDBR, &[0x68, 0, 0, 0, 0], &[0xf2, 0xe9, 0, 0, 0, 0], &[0xff, 0x35, 2, 0, 0, 0], BND_JUMP], "with bnd"),
            (&[ENDBR, &[0xeb, 2], &[0x66, 0x90], JUMP], "a function that jumps to a stub"),
        ] {
            assert!(pieces(code).stub(Pc(0x1000)).is_some(), "{what}");
        }
    }

    #[test]
    fn what_pushes_binds() {
        let push: &[u8] = &[0xff, 0x35, 2, 0, 0, 0];
        assert_eq!(pieces(&[push, JUMP]).stub(Pc(0x1000)), Some(Stub::Binds));
        assert_eq!(pieces(&[ENDBR, JUMP]).stub(Pc(0x1000)), Some(Stub::Jumps));
    }

    #[test]
    fn what_does_more_or_jumps_elsewhere_is_none() {
        for (code, what) in [
            (&[&[0x48, 0x89, 0xf8], JUMP][..], "mov %rdi, %rax first"),
            (&[&[0xff, 0x24, 0xc5, 0, 0, 0, 0]], "a jump table"),
            (&[&[0x41, 0xff, 0xe3]], "r11 as it was"),
            (&[&[0xeb, 0xfe]], "round and round"),
            (&[&[0xeb, 0x10]], "to code that never ran"),
            (&[&[0xc3]], "ret"),
        ] {
            assert!(pieces(code).stub(Pc(0x1000)).is_none(), "{what}");
        }
    }
}
