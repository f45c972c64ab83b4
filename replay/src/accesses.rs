//! Which instructions load and store.

use std::collections::BTreeMap;

use heuristics::SegmentTable;
use trace_format::Pc;

/// Of an instruction's memory operands, those that load and those that store. One that does both (`inc (%rax)`) is in
/// both counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MemoryOperands {
    /// All of them.
    pub all: u64,
    /// Those that are read, or may be.
    pub loads: u64,
    /// Those that are written, or may be.
    pub stores: u64,
}

/// By instruction, of those that have such operands and whose code bytes are known. A change of code at one address
/// counts as it was first.
#[must_use]
pub fn memory_operands(segments: &SegmentTable) -> BTreeMap<Pc, MemoryOperands> {
    let mut found = BTreeMap::new();
    for instruction in segments.iter().flat_map(|(id, _)| segments.listing(id).iter().flatten()) {
        let accesses = || instruction.memory().iter().map(|memory| memory.access);
        if accesses().next().is_some() {
            found.entry(instruction.pc()).or_insert(MemoryOperands {
                all: accesses().count() as u64,
                loads: accesses().filter(|access| access.reads).count() as u64,
                stores: accesses().filter(|access| access.writes).count() as u64,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use trace_format::{Block, BlockTable, Instruction, Kind, SpEffect};

    use super::*;

    #[test]
    fn loads_and_stores_are_told_apart() {
        // mov (%rax),%ecx; mov %ecx,(%rdi); incl (%rdi); lea (%rax),%rcx; movsq
        let code: [&[u8]; 5] = [&[0x8b, 0x08], &[0x89, 0x0f], &[0xff, 0x07], &[0x48, 0x8d, 0x08], &[0x48, 0xa5]];
        let mut at = 0x10;
        let instructions = code.map(|bytes| {
            let instruction =
                Instruction { pc: Pc(at), len: bytes.len() as u8, kind: Kind::Plain, sp: SpEffect::Add(0), memory: 0 };
            at += bytes.len() as u64;
            instruction
        });
        let mut blocks = BlockTable::default();
        let block = Block { instructions: instructions.to_vec(), code: code.concat(), ..Block::default() };
        blocks.push(block);
        let found = memory_operands(&SegmentTable::new(&blocks, &[]));
        let of = |all, loads, stores| MemoryOperands { all, loads, stores };
        let expected = [(0x10, of(1, 1, 0)), (0x12, of(1, 0, 1)), (0x14, of(1, 1, 1)), (0x19, of(2, 1, 1))];
        assert_eq!(found.into_iter().map(|(pc, of)| (pc.0, of)).collect::<Vec<_>>(), expected);
    }
}
