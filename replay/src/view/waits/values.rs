//! The constant that an instruction finds in a register, by the way that led there.
//!
//! Without optimisation `exchange(true)` and `store(false)` are functions, and what they put comes as a parameter. The
//! instructions that the thread ran before are followed backwards: through registers, through slots of frames, into
//! calls and out of them.

use std::collections::VecDeque;

use heuristics::SegmentTable;
use machine::{Condition, Instruction, Operand, Operation, Register};
use trace_format::{BlockId, Kind, SpEffect};

use crate::waiting::is_preserved;

/// Where the value is that is looked for.
#[derive(Clone, Copy)]
enum Place {
    Register(Register),
    /// At this distance from the stack pointer or the frame pointer.
    Slot(Register, i64),
}

/// What the instructions that were looked at say.
pub(super) enum Found {
    Constant(i64),
    Unknown,
    /// Before all of them it was in this register, of which these bits count.
    Before(Register, i64),
}

/// Instructions that are looked at.
const MOST_INSTRUCTIONS: usize = 2048;

/// What a register holds before the last of these instructions, which ran in this order.
pub(super) fn found<'a>(path: impl DoubleEndedIterator<Item = Option<Instruction<'a>>>, register: Register) -> Found {
    let (mut place, mut mask, mut skipped) = (Place::Register(register), -1, 0);
    // The two that ran behind the one that is looked at.
    let (mut next, mut second) = (None, None);
    for (looked, instruction) in path.rev().enumerate() {
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
            (Operation::And, Operand::Constant(constant)) => {
                mask &= constant;
                continue;
            }
            _ => return Found::Unknown,
        };
        place = match operand {
            Operand::Constant(constant) => return Found::Constant(constant & mask),
            Operand::Register(part) => Place::Register(part.register),
            Operand::Memory => match from.address().filter(machine::Memory::is_in_frame) {
                Some(memory) => {
                    Place::Slot(memory.base.map_or(Register::SP, |base| base.register), memory.displacement)
                }
                None => return Found::Unknown,
            },
            Operand::Several => return Found::Unknown,
        };
    }
    match place {
        Place::Register(register) if skipped == 0 => Found::Before(register, mask),
        _ => Found::Unknown,
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
    let tests = one.operation() == Operation::Test
        && one.register(0).is_some_and(|part| part.register == register)
        && (one.takes_one_twice() || one.constant(1) == Some(1));
    let (Some(branch), Some(then)) = behind else { return false };
    tests
        && branch.kind() == Kind::Branch
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
        if self.blocks.len() == MOST_BLOCKS {
            self.blocks.pop_front();
        }
        self.blocks.push_back((block, executed));
    }

    /// The thread goes on elsewhere.
    pub fn clear(&mut self) {
        self.blocks.clear();
    }

    /// What the register holds before this instruction of a block that the thread runs now.
    pub fn constant(&self, table: &SegmentTable, block: BlockId, number: usize, register: Register) -> Option<i64> {
        let now = std::iter::once((block, number as u32 + 1));
        let code = |(block, executed): (BlockId, u32)| {
            let all = table.of_block(block).iter().flat_map(|segment| table.listing(*segment).iter());
            all.take(executed as usize).collect::<Vec<_>>()
        };
        match found(self.blocks.iter().copied().chain(now).flat_map(code), register) {
            Found::Constant(constant) => Some(constant),
            Found::Unknown | Found::Before(..) => None,
        }
    }
}
