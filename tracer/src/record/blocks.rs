//! Blocks as they are put together, and found again by what they hold.

use std::hash::{DefaultHasher, Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use trace_format::{Block, BlockId, SpEffect};

use crate::decode::Decoded;
use crate::kernel::ptrace::Registers;

/// Longer runs of instructions without a transfer of control are cut, so that what a thread holds back stays small.
pub const MAX_INSTRUCTIONS: usize = 64;

/// The instructions that a thread has run since its last block was written.
#[derive(Debug, Default)]
pub struct PendingBlock {
    /// The instructions and their bytes.
    pub block: Block,
    /// The stack pointer after each instruction that changes it by an amount that is not constant.
    pub sps: Vec<u64>,
    /// The addresses of the memory operands.
    pub memory: Vec<u64>,
}

impl PendingBlock {
    /// Whether nothing has run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.block.instructions.is_empty()
    }

    /// Adds an instruction that has run; `before` and `sp` are the registers before and the stack pointer after it.
    pub fn push(&mut self, decoded: &Decoded, before: &Registers, sp: u64) {
        self.block.instructions.push(decoded.instruction);
        self.block.code.extend_from_slice(decoded.code());
        if decoded.instruction.sp == SpEffect::Recorded {
            self.sps.push(sp);
        }
        if !decoded.memory.is_empty() {
            self.memory.extend(decoded.addresses(before));
        }
    }

    /// Whether it has to be written now: it is as long as a block may be.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.block.instructions.len() >= MAX_INSTRUCTIONS
    }

    /// Empties it, and keeps its room.
    pub fn clear(&mut self) {
        self.block.instructions.clear();
        self.block.code.clear();
        self.sps.clear();
        self.memory.clear();
    }
}

/// A block's content in 128 bits: two blocks that differ have the same with a probability of one in 2^64 among four
/// billion.
pub type Digest = [u64; 2];

/// Finds the number of a block by its content, instructions and bytes. Takes bounded memory: beyond [`Interner::MOST`]
/// it forgets what it knows, and a block that comes again gets a second number, which takes room in the file and
/// nothing else.
#[derive(Debug, Default)]
pub struct Interner {
    ids: FxHashMap<Digest, BlockId>,
    bytes: Vec<u8>,
}

impl Interner {
    /// The most blocks that it knows: 40 MiB of memory.
    pub const MOST: usize = 900_000;

    /// The number of this block, if it is known; else what it is to be known by.
    pub fn find(&mut self, block: &Block) -> Result<BlockId, Digest> {
        let digest = self.digest(block);
        self.ids.get(&digest).copied().ok_or(digest)
    }

    /// Notes the number that a block got.
    pub fn insert(&mut self, digest: Digest, id: BlockId) {
        if self.ids.len() >= Self::MOST {
            self.ids.clear();
        }
        self.ids.insert(digest, id);
    }

    fn digest(&mut self, block: &Block) -> Digest {
        self.bytes.clear();
        let mut expected = None;
        for instruction in &block.instructions {
            // What an instruction does need not follow from its bytes: a system call that begins another program sets
            // the stack pointer.
            let (sp, added) = match instruction.sp {
                SpEffect::Add(0) => (0, 0),
                SpEffect::Add(added) => (1, added),
                SpEffect::Recorded => (2, 0),
            };
            let elsewhere = expected != Some(instruction.pc.0);
            let first = (instruction.kind as u8) << 4 | instruction.len;
            self.bytes.extend([first, sp | u8::from(elsewhere) << 2, instruction.memory]);
            if added != 0 {
                self.bytes.extend(added.to_le_bytes());
            }
            if elsewhere {
                self.bytes.extend(instruction.pc.0.to_le_bytes());
            }
            expected = Some(instruction.pc.0.wrapping_add(instruction.len.into()));
        }
        self.bytes.extend(&block.code);
        [self.half::<DefaultHasher>(block), self.half::<FxHasher>(block)]
    }

    /// A half of a digest, by one of two ways of hashing that have nothing in common.
    fn half<H: Hasher + Default>(&self, block: &Block) -> u64 {
        let mut hasher = H::default();
        hasher.write(&self.bytes);
        block.addresses.hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use trace_format::Pc;

    use super::*;
    use crate::decode::InstructionDecoder;
    use crate::kernel::ptrace::no_registers;

    fn pending(code: &[&[u8]]) -> PendingBlock {
        let mut pending = PendingBlock::default();
        let (mut decoder, mut pc) = (InstructionDecoder::new(true), 0x1000);
        for bytes in code {
            pending.push(&decoder.decode(Pc(pc), bytes, true), &no_registers(), 0x8000);
            pc += bytes.len() as u64;
        }
        pending
    }

    #[test]
    fn blocks_are_told_apart_by_their_bytes() {
        let mut interner = Interner::default();
        // mov eax, 1 and mov eax, 2 differ in nothing else.
        let [one, two] = [pending(&[&[0xb8, 1, 0, 0, 0]]).block, pending(&[&[0xb8, 2, 0, 0, 0]]).block];
        for (block, id) in [(&one, 0), (&two, 1)] {
            let digest = interner.find(block).unwrap_err();
            interner.insert(digest, BlockId(id));
        }
        assert_eq!(interner.find(&one), Ok(BlockId(0)));
        assert_eq!(interner.find(&two), Ok(BlockId(1)));
    }

    #[test]
    fn blocks_are_told_apart_by_what_the_stream_holds() {
        let mut interner = Interner::default();
        let block = pending(&[&[0x0f, 0x05]]).block;
        let mut other = block.clone();
        other.instructions[0].sp = SpEffect::Recorded;
        let digest = interner.find(&block).unwrap_err();
        interner.insert(digest, BlockId(0));
        assert_ne!(interner.find(&other), Ok(BlockId(0)));
    }

    #[test]
    fn what_the_stream_holds_matches_the_block() {
        // push rax; leave; ret
        let mut pending = pending(&[&[0x50], &[0xc9], &[0xc3]]);
        assert_eq!(pending.sps.len(), pending.block.recorded_sps(3));
        assert_eq!(pending.sps, [0x8000]);
        assert_eq!(pending.memory.len(), pending.block.recorded_addresses(3));
        assert_eq!(pending.block.code, [0x50, 0xc9, 0xc3]);
        pending.clear();
        assert!(pending.is_empty() && pending.sps.is_empty() && pending.memory.is_empty());
    }
}
