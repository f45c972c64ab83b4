//! The constant that an instruction finds in a register, by the way that led there.
//!
//! Without optimisation `exchange(true)` and `store(false)` are functions, and what they put comes as a parameter. The
//! instructions that the thread ran before are followed backwards: through registers, through slots of frames, into
//! calls and out of them.

use std::collections::VecDeque;

use heuristics::SegmentTable;
use machine::{Condition, Instruction, Operand, Operation, Operator, Register, Step};
use trace_format::{BlockId, Kind, SpEffect};

use crate::waiting::is_preserved;

/// Where the value is that is looked for.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Register(Register),
    /// At this distance from the stack pointer or the frame pointer.
    Slot(Register, i64),
}

/// What the instructions that were looked at say.
pub(super) enum Found<'a> {
    Constant(i64),
    Unknown,
    /// Before all of them it was in this register, of which these bits count.
    Before(Register, i64),
    /// This instruction made it, or loaded it, or some bits of it, from memory outside of the frame; so much was added
    /// since, and so many instructions ran since.
    Made(Instruction<'a>, i64, usize),
    Loaded(Instruction<'a>, i64, usize),
}

impl Place {
    /// Where the operand of this index is, if it is a register or lies in the frame.
    pub fn of(instruction: Instruction, index: usize) -> Option<Place> {
        match instruction.operand(index) {
            Operand::Register(part) => Some(Place::Register(part.register)),
            Operand::Memory => Place::in_frame(instruction),
            _ => None,
        }
    }

    fn in_frame(instruction: Instruction) -> Option<Place> {
        let memory = instruction.address().filter(machine::Memory::is_in_frame)?;
        Some(Place::Slot(memory.base.map_or(Register::SP, |base| base.register), memory.displacement))
    }
}

/// Instructions that are looked at.
const MOST_INSTRUCTIONS: usize = 2048;

/// What is there before the first of these instructions, which are told from the last one that ran on.
pub(super) fn found<'a>(path: impl Iterator<Item = Option<Instruction<'a>>>, mut place: Place) -> Found<'a> {
    let (mut mask, mut added, mut skipped) = (-1, 0_i64, 0);
    // The two that ran behind the one that is looked at.
    let (mut next, mut second) = (None, None);
    for (looked, instruction) in path.enumerate() {
        let Some(one) = instruction.filter(|_| looked < MOST_INSTRUCTIONS) else { return Found::Unknown };
        let behind = (next, second);
        (next, second) = (Some(one), next);
        // The last one itself.
        if behind.0.is_none() {
            continue;
        }
        let kind = one.kind();
        if skipped > 0 || kind == Kind::Return && is_kept(place) {
            skipped += i64::from(kind == Kind::Return) - i64::from(kind.is_call());
            continue;
        }
        let from = match place {
            Place::Register(register) => {
                if was_nothing(one, behind, register) {
                    return Found::Constant(0);
                } else if one.writes() & register.bit() == 0 {
                    continue;
                } else if one.zeroes() {
                    return Found::Constant(0);
                }
                one
            }
            Place::Slot(base, displacement) => match slot(one, base, displacement) {
                Slot::At(base, displacement) => {
                    place = Place::Slot(base, displacement);
                    continue;
                }
                Slot::Written => one,
                Slot::Lost => return Found::Unknown,
            },
        };
        let operand = match (from.operation(), from.operand(1)) {
            (Operation::Push, _) => from.operand(0),
            (Operation::Move | Operation::Extend, operand) => operand,
            (Operation::And, Operand::Constant(constant)) if added == 0 => {
                mask &= constant;
                continue;
            }
            _ if mask != -1 => return Found::Unknown,
            _ => match adds(from) {
                Some((operand, by)) if operand != Operand::Memory => {
                    added = added.wrapping_add(by);
                    operand
                }
                _ => return Found::Made(from, added, looked),
            },
        };
        place = match operand {
            Operand::Constant(constant) if added == 0 => return Found::Constant(constant & mask),
            Operand::Register(part) => Place::Register(part.register),
            Operand::Memory => match Place::in_frame(from) {
                Some(slot) => slot,
                None => return Found::Loaded(from, added, looked),
            },
            Operand::Constant(_) | Operand::Several => return Found::Unknown,
        };
    }
    match place {
        Place::Register(register) if skipped == 0 && added == 0 => Found::Before(register, mask),
        _ => Found::Unknown,
    }
}

/// To what the instruction adds which constant, if it does nothing else.
pub(super) fn adds(instruction: Instruction) -> Option<(Operand, i64)> {
    match instruction.step() {
        Step::Update { operator: Operator::Add, acc, by: Operand::Constant(by), .. } => Some((acc, by)),
        _ => None,
    }
}

/// Whether a function leaves it as it was.
fn is_kept(place: Place) -> bool {
    match place {
        Place::Register(register) => is_preserved(register.index()),
        Place::Slot(..) => true,
    }
}

/// Whether the instruction tests the register, and the branch behind it was taken as where that is 0.
fn was_nothing(one: Instruction, behind: (Option<Instruction>, Option<Instruction>), register: Register) -> bool {
    let (Some(branch), Some(then)) = behind else { return false };
    let tests = || {
        one.operation() == Operation::Test
            && one.register(0).is_some_and(|part| part.register == register)
            && (one.takes_one_twice() || one.constant(1) == Some(1))
    };
    branch.kind() == Kind::Branch
        && tests()
        && match branch.condition() {
            Condition::Equal => then.pc() != branch.next_pc(),
            Condition::NotEqual => then.pc() == branch.next_pc(),
            _ => false,
        }
}

/// What an instruction is to a slot.
enum Slot {
    /// Nothing: before it, the slot is here.
    At(Register, i64),
    Written,
    Lost,
}

fn slot(one: Instruction, base: Register, displacement: i64) -> Slot {
    let is_it = one.address().is_some_and(|memory| memory.is_at(base) && memory.displacement == displacement);
    if one.operation() == Operation::Push && base == Register::SP && displacement == 0 {
        return Slot::Written;
    }
    if is_it && one.operand(0) == Operand::Memory && !matches!(one.operation(), Operation::Test | Operation::Compare) {
        return Slot::Written;
    }
    match (base, one.sp()) {
        (Register::SP, SpEffect::Add(change)) => Slot::At(base, displacement + i64::from(change)),
        (Register::SP, SpEffect::Recorded) => Slot::Lost,
        _ if one.writes() & base.bit() == 0 => Slot::At(base, displacement),
        _ if one.operation() == Operation::Move
            && one.register(1).is_some_and(|part| part.register == Register::SP) =>
        {
            Slot::At(Register::SP, displacement)
        }
        _ => Slot::Lost,
    }
}

/// Blocks that are looked at.
const MOST_BLOCKS: usize = 48;

/// The blocks that a thread ran last.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    blocks: VecDeque<(BlockId, u32)>,
}

impl History {
    /// The thread ran so many instructions of a block.
    pub fn ran(&mut self, block: BlockId, executed: u32) {
        let (ran, blocks) = ((block, executed), &mut self.blocks);
        // Of a loop of one block or of two, one turn is kept.
        let from_end = |back: usize| blocks.len().checked_sub(back).map(|at| blocks[at]);
        if from_end(1) == Some(ran) {
            return;
        } else if from_end(2) == Some(ran) && from_end(3) == from_end(1) {
            blocks.pop_back();
            return;
        }
        if blocks.len() == MOST_BLOCKS {
            blocks.pop_front();
        }
        blocks.push_back(ran);
    }

    /// The thread goes on elsewhere.
    pub fn clear(&mut self) {
        self.blocks.clear();
    }

    /// What is there before this instruction of a block that the thread runs now, or so many before that.
    pub fn found<'a>(
        &self,
        table: &'a SegmentTable,
        (block, number, before): (BlockId, usize, usize),
        place: Place,
    ) -> Found<'a> {
        let now = std::iter::once((block, number as u32 + 1));
        let code = |(block, executed): (BlockId, u32)| {
            let all = table.of_block(block).iter().flat_map(|segment| table.listing(*segment).iter());
            all.take(executed as usize).collect::<Vec<_>>()
        };
        found(self.blocks.iter().copied().chain(now).flat_map(code).rev().skip(before), place)
    }
}
