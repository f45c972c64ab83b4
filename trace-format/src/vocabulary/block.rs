//! The block table: what is the same each time a block runs is stored here, once.

use std::ops::Range;

use crate::{Address, BlockId, Pc};

/// What an instruction is to control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Falls through to the next instruction.
    Plain = 0,
    /// `pause`: the mark of a spin-wait loop; falls through.
    Pause = 1,
    /// A system call; falls through.
    Syscall = 2,
    /// A conditional branch with a constant target (also `loop`, `jrcxz`).
    Branch = 3,
    /// An unconditional jump with a constant target.
    Jump = 4,
    /// A jump through a register or memory.
    IndirectJump = 5,
    /// A call with a constant target.
    Call = 6,
    /// A call through a register or memory.
    IndirectCall = 7,
    /// A return.
    Return = 8,
}

impl Kind {
    /// Every kind, in the order of its code in the file.
    pub const ALL: [Kind; 9] = [
        Kind::Plain,
        Kind::Pause,
        Kind::Syscall,
        Kind::Branch,
        Kind::Jump,
        Kind::IndirectJump,
        Kind::Call,
        Kind::IndirectCall,
        Kind::Return,
    ];

    /// The kind with this code in the file, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.get(code as usize).copied()
    }

    /// Whether the instruction after it starts a basic block, be the branch taken or not.
    #[must_use]
    pub fn transfers_control(self) -> bool {
        self >= Kind::Branch
    }

    /// Whether it calls a function.
    #[must_use]
    pub fn is_call(self) -> bool {
        matches!(self, Kind::Call | Kind::IndirectCall)
    }
}

/// What an instruction does to the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpEffect {
    /// Adds this many bytes, each time (0 for most instructions; -8 for a push or call).
    Add(i32),
    /// Changes it by an amount that is not constant (`leave`, `mov rsp, rbp`, alloca): the stream holds the
    /// stack pointer after each execution.
    Recorded,
}

/// One static instruction of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Its address.
    pub pc: Pc,
    /// Its length in bytes (1 to 15); 0 when it is not known, as in traces read from text.
    pub len: u8,
    /// What it is to control flow.
    pub kind: Kind,
    /// What it does to the stack pointer.
    pub sp: SpEffect,
    /// How many memory addresses each execution of it has.
    pub memory: u8,
}

impl Instruction {
    /// The address after it, where it is known.
    #[must_use]
    pub fn next_pc(&self) -> Option<Pc> {
        (self.len > 0).then(|| Pc(self.pc.0.wrapping_add(u64::from(self.len))))
    }
}

/// Instructions that run in a row. They need not be neighbours in memory: a block may follow a jump.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Block {
    /// The instructions, in the order in which they run; never empty in a trace.
    pub instructions: Vec<Instruction>,
    /// The bytes of all instructions, one after another; empty when they are not known (traces read from text).
    pub code: Vec<u8>,
    /// How the memory addresses follow from the values in the stream, address by address; empty when each is a value
    /// itself.
    pub addresses: Vec<Address>,
}

impl Block {
    /// The most instructions a block may have.
    pub const MAX_INSTRUCTIONS: usize = 4096;

    /// The address of its first instruction.
    #[must_use]
    pub fn start(&self) -> Pc {
        self.instructions[0].pc
    }

    /// Its last instruction.
    #[must_use]
    pub fn last(&self) -> &Instruction {
        &self.instructions[self.instructions.len() - 1]
    }

    /// How many stack pointers the stream holds for an execution of its first `executed` instructions.
    #[must_use]
    pub fn recorded_sps(&self, executed: usize) -> usize {
        self.instructions[..executed].iter().filter(|i| i.sp == SpEffect::Recorded).count()
    }

    /// How many memory addresses an execution of its first `executed` instructions has.
    #[must_use]
    pub fn recorded_addresses(&self, executed: usize) -> usize {
        self.instructions[..executed].iter().map(|i| usize::from(i.memory)).sum()
    }

    /// Where the bytes of instruction `index` are in [`Block::code`]; empty when the bytes are not known.
    #[must_use]
    pub fn code_range(&self, index: usize) -> Range<usize> {
        if self.code.is_empty() {
            return 0..0;
        }
        let start: usize = self.instructions[..index].iter().map(|i| usize::from(i.len)).sum();
        start..start + usize::from(self.instructions[index].len)
    }
}

/// All blocks of a trace.
#[derive(Clone, Debug, Default)]
pub struct BlockTable {
    blocks: Vec<Block>,
}

impl BlockTable {
    /// Adds a block and returns its number.
    ///
    /// # Panics
    /// When the table is full (2^32 - 2 blocks) or the block is empty: both are bugs of the caller.
    pub fn push(&mut self, block: Block) -> BlockId {
        assert!(!block.instructions.is_empty(), "a block has at least one instruction");
        let id = u32::try_from(self.blocks.len()).expect("fewer than 2^32 blocks");
        assert!(id < u32::MAX, "the last block number is the escape code of the stream");
        self.blocks.push(block);
        BlockId(id)
    }

    /// The block of that number, if there is one.
    #[must_use]
    pub fn get(&self, id: BlockId) -> Option<&Block> {
        self.blocks.get(id.index())
    }

    /// How many blocks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// All blocks in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        self.blocks.iter().enumerate().map(|(i, b)| (BlockId(i as u32), b))
    }
}

impl std::ops::Index<BlockId> for BlockTable {
    type Output = Block;

    fn index(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }
}
