//! What instructions may do to locks of the program's own, by the code of their blocks and of what leads there.

use heuristics::SegmentTable;
use machine::{Instruction, Operand, Operation, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, Pc, Trace};

use super::super::is_in_library;
use super::super::values::{self, Found, Place};
use super::{barriers, queues, tickets};
use crate::waiting::Code;

/// What an instruction does to the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum Does {
    Takes,
    /// It takes the word, or a share of it, or does something else.
    MayTake,
    Gives,
    /// It counts the word down, clears a bit of it, or puts an unknown number there: it gives it where the thread has
    /// it.
    MayGive,
    /// It counts who has come to a barrier.
    Arrives,
    /// It draws a ticket for the word, or counts up what is served; or queues there.
    Draws,
}

/// An instruction of a block that may act on a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    pub(super) pc: Pc,
    /// Which of the block's instructions it is.
    pub(super) number: usize,
    pub(super) does: Does,
    /// What it puts is not known from the code of its block.
    pub(super) is_open: bool,
    pub(super) word: Word,
    /// How many bytes it has.
    pub(super) size: u16,
    /// By which register it finds the word, and how far from there.
    pub(super) at: Option<(Register, i64)>,
}

/// Which word an instruction acts on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    /// Its address stands in the code.
    At(u64),
    /// Which of the addresses that were recorded for the block is its address.
    Recorded(usize),
    /// Its address is unknown.
    Unknown,
}

/// The instructions that may act on locks of the program's own.
pub(in crate::view) struct Acts<'a> {
    pub(super) by_block: Vec<Box<[Act]>>,
    /// Stores in functions that a symbol calls an atomic's, as without optimisation.
    pub(super) of_atomics: FxHashSet<Pc>,
    pub(super) tickets: tickets::Acts,
    pub(super) barriers: barriers::Acts<'a>,
    pub(super) queues: queues::Acts,
    pub(super) table: &'a SegmentTable,
}

impl<'a> Acts<'a> {
    /// Those of all blocks, outside of the C library and of runtimes.
    pub fn of(trace: &'a Trace, table: &'a SegmentTable, leading: Option<&Code>) -> Acts<'a> {
        let code = |id| -> Vec<Option<Instruction<'_>>> {
            table.of_block(id).iter().flat_map(|segment| table.listing(*segment).iter()).collect()
        };
        // What a block does not show another may, which came there by another way.
        let mut known: FxHashMap<Pc, Does> = FxHashMap::default();
        let mut by_block: Vec<Vec<Act>> = Vec::new();
        let (mut taken, mut sizes) = (FxHashSet::default(), FxHashSet::default());
        for (id, block) in trace.blocks().iter() {
            let mut acts = Vec::new();
            if block.instructions.iter().any(|i| i.memory > 0) {
                let code = code(id);
                let mut recorded = 0;
                for (i, instruction) in block.instructions.iter().enumerate() {
                    let (pc, at) = (instruction.pc, recorded);
                    recorded += usize::from(instruction.memory);
                    let mut is_open = false;
                    let constant = |register| {
                        let known = constant(&code, i, register, leading);
                        is_open |= known.is_none();
                        known
                    };
                    let atomic =
                        code[i].filter(|one| one.is_atomic() && instruction.memory > 0 && !is_in_library(trace, pc));
                    let Some(does) = atomic.and_then(|one| does(one, constant)) else { continue };
                    let size = code[i].and_then(Instruction::address).map_or(0, |memory| memory.size);
                    let (word, at) = (Word::Recorded(at), code[i].and_then(by_register));
                    acts.push(Act { pc, number: i, does, is_open, word, size, at });
                    if does == Does::Takes || is_open {
                        taken.extend(code[i].and_then(Instruction::place));
                        sizes.insert(size);
                    }
                    if !matches!(does, Does::MayTake | Does::MayGive) || !known.contains_key(&pc) {
                        known.insert(pc, does);
                    }
                }
            }
            by_block.push(acts);
        }
        by_block.iter_mut().flatten().for_each(|act| act.does = known[&act.pc]);
        if !sizes.is_empty() {
            for ((id, _), acts) in trace.blocks().iter().zip(&mut by_block) {
                let code = code(id);
                let stores = (0..code.len()).filter_map(|i| Some((i, may_store_nothing(&code, i, leading)?)));
                acts.extend(stores.filter_map(|(number, (one, is_open))| {
                    let memory = one.address().filter(|memory| sizes.contains(&memory.size))?;
                    let word = match one.place() {
                        Some(place) => taken.contains(&place).then_some(Word::At(place)),
                        None => (!memory.is_in_frame()).then_some(Word::Unknown),
                    };
                    let (pc, does, size, at) = (one.pc(), Does::Gives, memory.size, by_register(one));
                    let word = word.filter(|_| !is_in_library(trace, pc))?;
                    Some(Act { pc, number, does, is_open, word, size, at })
                }));
                acts.sort_by_key(|act| act.number);
            }
        }
        let stores = by_block.iter().flatten().filter(|act| matches!(act.word, Word::Unknown)).map(|act| act.pc);
        let is_of_atomics = |pc: &Pc| trace.symbol_of(*pc).is_some_and(|symbol| symbol.name.contains("atomic"));
        let of_atomics = stores.filter(is_of_atomics).collect();
        let by_block = by_block.into_iter().map(Vec::into_boxed_slice).collect();
        let (tickets, barriers) = (tickets::Acts::of(trace, table), barriers::Acts::of(trace, table));
        let queues = queues::Acts::of(trace, table);
        Acts { by_block, of_atomics, tickets, barriers, queues, table }
    }

    /// Of a trace whose lanes are told as they are.
    pub fn none(trace: &'a Trace, table: &'a SegmentTable) -> Acts<'a> {
        Acts {
            by_block: trace.blocks().iter().map(|_| Box::default()).collect(),
            of_atomics: FxHashSet::default(),
            tickets: tickets::Acts::default(),
            barriers: barriers::Acts::none(trace),
            queues: queues::Acts::default(),
            table,
        }
    }

    /// Whether the way that leads to some instruction tells what it does.
    pub fn need_ways(&self) -> bool {
        let of_forms = !self.tickets.is_empty() || !self.barriers.is_empty() || !self.queues.is_empty();
        of_forms || self.by_block.iter().flatten().any(|act| act.is_open)
    }

    /// Whether some instruction of the block may act on a lock.
    #[inline]
    pub fn has(&self, block: BlockId) -> bool {
        !self.by_block[block.index()].is_empty()
            || self.tickets.has(block)
            || self.barriers.has(block)
            || self.queues.has(block)
    }
}

/// The register at whose distance from it the instruction accesses memory.
fn by_register(instruction: Instruction) -> Option<(Register, i64)> {
    let memory = instruction.address().filter(|memory| memory.index.is_none())?;
    Some((memory.base?.register, memory.displacement))
}

/// What an atomic instruction may do to a lock, by the constants in registers.
pub(super) fn does(instruction: Instruction, mut constant: impl FnMut(Register) -> Option<i64>) -> Option<Does> {
    match instruction.operation() {
        Operation::Exchange => {
            let register = instruction.register(1).or_else(|| instruction.register(0))?;
            Some(constant(register.register).map_or(Does::MayGive, |put| match put {
                0 => Does::Gives,
                _ => Does::Takes,
            }))
        }
        Operation::CompareExchange => {
            let put = instruction.register(1).and_then(|part| constant(part.register));
            match (constant(Register::AX), put) {
                (Some(0), Some(0)) => None,
                (_, Some(0)) => Some(Does::MayGive),
                (Some(0), _) | (None, Some(_)) => Some(Does::Takes),
                (Some(_), Some(_)) => None,
                _ => Some(Does::MayTake),
            }
        }
        Operation::TestAndSet => Some(Does::Takes),
        Operation::TestAndClear => Some(Does::Gives),
        Operation::Subtract | Operation::ExchangeAdd | Operation::Add | Operation::And => Some(Does::MayGive),
        _ => (instruction.operand_count() == 1).then_some(Does::MayGive),
    }
}

/// The instruction of this number, if it may write 0 to memory; and whether that is open.
fn may_store_nothing<'a>(
    code: &[Option<Instruction<'a>>],
    at: usize,
    leading: Option<&Code>,
) -> Option<(Instruction<'a>, bool)> {
    let instruction = code[at].filter(|one| one.operation() == Operation::Move)?;
    let put = match instruction.operand(1) {
        _ if instruction.operand(0) != Operand::Memory => return None,
        Operand::Constant(put) => Some(put),
        Operand::Register(part) => constant(code, at, part.register, leading),
        _ => return None,
    };
    put.is_none_or(|put| put == 0).then_some((instruction, put.is_none()))
}

/// What a general register holds before the instruction of this number, where the code on the way there says so; before
/// the block, all that leads there.
fn constant(code: &[Option<Instruction<'_>>], at: usize, register: Register, leading: Option<&Code>) -> Option<i64> {
    match values::found(code[..=at].iter().rev().copied(), Place::Register(register)) {
        Found::Constant(constant) => Some(constant),
        Found::Unknown | Found::Loaded(..) | Found::Made(..) => None,
        Found::Before(register, mask) => {
            let begin = (*code.first()?)?.pc();
            leading?.constant_at(begin, register.index()).map(|constant| constant.cast_signed() & mask)
        }
    }
}
