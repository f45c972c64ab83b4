//! What the instructions of segments do, decoded from their code bytes.

use machine::{Listing, Operand, Operation, Table};
use trace_format::{Block, Kind, Pc};

use crate::program::segment::{SegmentId, SegmentTable};

/// The instructions of all segments, decoded, and where those of each begin.
#[derive(Clone, Debug)]
pub(crate) struct Decoded {
    table: Table,
    begins: Vec<u32>,
}

impl Decoded {
    pub(crate) fn of(segments: &SegmentTable) -> Decoded {
        // A call that is left out, and a stub, have the code of the segment before.
        let is_another = |id: SegmentId| id.0 > 0 && segments[SegmentId(id.0 - 1)].origin == segments[id].origin;
        let (mut begins, mut count) = (Vec::with_capacity(segments.len()), 0);
        for (id, segment) in segments.iter() {
            if is_another(id) {
                begins.push(begins[id.0 as usize - 1]);
            } else {
                begins.push(count);
                count += segment.len() as u32;
            }
        }
        let code = segments.iter().filter(|(id, _)| !is_another(*id)).flat_map(|(id, segment)| {
            let mut code = segments.code(id);
            segment.instructions.iter().map(move |instruction| {
                let (own, rest) = code.split_at(usize::from(instruction.len).min(code.len()));
                code = rest;
                (instruction.pc, own)
            })
        });
        Decoded { table: Table::of(code, count as usize), begins }
    }

    /// The so many instructions of a segment.
    pub(crate) fn listing(&self, segment: SegmentId, length: usize) -> Listing<'_> {
        let begin = self.begins[segment.0 as usize] as usize;
        self.table.listing(begin..begin + length)
    }
}

/// How many operations a GPU needs for an instruction: one, and one more for each access to memory besides another
/// operation. GPUs load and store with instructions of their own, so `add [m], r` is three there.
pub(crate) fn operations(instruction: machine::Instruction) -> u32 {
    let only_moves = matches!(instruction.operation(), Operation::Move | Operation::Extend);
    if only_moves || !instruction.operands().any(|operand| operand == Operand::Memory) {
        return 1;
    }
    let accesses = instruction.memory().iter().map(|memory| memory.access);
    1 + accesses.map(|access| u32::from(access.reads) + u32::from(access.writes)).sum::<u32>()
}

/// The two ways of the block's instruction of this index: taken, and to the next instruction. None where it is no
/// conditional branch, or its bytes are not known or say something else by now.
pub(crate) fn ways(block: &Block, index: usize) -> Option<[Pc; 2]> {
    let instruction = &block.instructions[index];
    if instruction.kind != Kind::Branch {
        return None;
    }
    let bytes = block.code.get(block.code_range(index))?;
    Some([machine::target(instruction.pc, bytes)?, Pc(instruction.pc.0.wrapping_add(bytes.len() as u64))])
}

#[cfg(test)]
mod tests {
    use trace_format::{BlockId, BlockTable, Instruction, SpEffect};

    use super::*;

    fn table(block: Block) -> SegmentTable {
        let mut all = BlockTable::default();
        all.push(block);
        SegmentTable::new(&all, &[])
    }

    /// Code at 0x1000 and so on in one block, and what its instructions are to control.
    fn code(parts: &[(&[u8], Kind)]) -> Block {
        let (mut block, mut pc) = (Block::default(), 0x1000);
        for (bytes, kind) in parts {
            let (len, sp) = (bytes.len() as u8, SpEffect::Add(0));
            block.instructions.push(Instruction { pc: Pc(pc), len, kind: *kind, sp, memory: 0 });
            block.code.extend_from_slice(bytes);
            pc += bytes.len() as u64;
        }
        block
    }

    #[test]
    fn what_computes_in_memory_is_several_operations() {
        // add eax, ecx; mov eax, [rdi]; lea eax, [rdi+1]; add eax, [rdi]; add [rdi], eax; cmp [rdi], eax; mov [rdi],
        // eax.
        let all: [&[u8]; 7] = [&[1, 0xC8], &[0x8B, 7], &[0x8D, 0x47, 1], &[3, 7], &[1, 7], &[0x39, 7], &[0x89, 7]];
        let counts = all.map(|bytes| table(code(&[(bytes, Kind::Plain)])).operations(SegmentId(0)));
        assert_eq!(counts, [1, 1, 1, 2, 3, 2, 1]);
        let unknown = Block { code: Vec::new(), ..code(&[(&[0x39, 7], Kind::Plain)]) };
        assert_eq!(table(unknown).operations(SegmentId(0)), 1, "its bytes are not known");
    }

    #[test]
    fn short_and_near_branches_lead_both_ways() {
        let ways = |kind, bytes: &[u8]| ways(&code(&[(bytes, kind)]), 0);
        // je +0x10; jne -0x100 (the displacement counts from the next instruction); loop -2: to itself.
        assert_eq!(ways(Kind::Branch, &[0x74, 0x10]), Some([Pc(0x1012), Pc(0x1002)]));
        let near = [0x0F, 0x85, 0x00, 0xFF, 0xFF, 0xFF];
        assert_eq!(ways(Kind::Branch, &near), Some([Pc(0xF06), Pc(0x1006)]));
        assert_eq!(ways(Kind::Branch, &[0xE2, 0xFE]), Some([Pc(0x1000), Pc(0x1002)]));
        assert_eq!(ways(Kind::Jump, &[0xEB, 0x10]), None);
        assert_eq!(ways(Kind::Branch, &[]), None);
        assert_eq!(ways(Kind::Branch, &[0x90]), None, "it is another instruction by now");
    }

    #[test]
    fn a_call_that_is_left_out_has_the_listing_of_the_call() {
        let call: &[u8] = &[0xe8, 0, 0, 0, 0];
        let t = table(code(&[(&[0x90], Kind::Plain), (call, Kind::Call), (&[0xc3], Kind::Return)]));
        let id = t.of_block(BlockId(0))[0];
        assert_ne!(id, t.elided(id));
        let targets = [id, t.elided(id)].map(|id| t.listing(id).last().and_then(machine::Instruction::target));
        assert_eq!(targets, [Some(Pc(0x1006)); 2]);
        let last = t.listing(t.of_block(BlockId(0))[1]).last().map(machine::Instruction::kind);
        assert_eq!(last, Some(Kind::Return));
    }
}
