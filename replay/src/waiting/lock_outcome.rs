//! What values and flags tell of a locked operation of a turn: whether it changed memory.
//!
//! A lock that is tried over and over changes nothing as long as another has it, and only what the code does with the
//! result shows that. Compilers say it in many ways: the flags of `cmpxchg`, the value that `xchg` found, one bit of a
//! byte that lay in a slot of the frame meanwhile.

use machine::{Condition, Instruction, Operand, Operation, Register, low_bytes};

use super::loop_effects::{Known, Value, Walk};

/// Locked operations of a turn, at most.
const MOST_TRIED: u32 = 32;

/// A value that tells whether the locked operation of this number changed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LockOutcome {
    pub(super) operation: u32,
    /// Whether what it tells by is set where memory was changed; else it is where memory was not.
    when_changed: bool,
    by: By,
}

/// By what a value tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// It is not 0. Of a flag that is a number also its lowest bit.
    Value,
    /// One bit. The others among the so many lowest are 0.
    Bit { bit: u32, clear: u32 },
}

/// A flag that tells whether a locked operation changed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LockFlag {
    pub(super) operation: u32,
    pub(super) flag: Register,
    /// What it is where memory was changed.
    pub(super) when_changed: bool,
}

impl LockOutcome {
    /// What is told where only so many low bits are of this value.
    pub(super) fn within(self, bits: u32) -> Option<LockOutcome> {
        match self.by {
            By::Value => None,
            By::Bit { bit, clear } => Some(LockOutcome { by: By::Bit { bit, clear: clear.min(bits) }, ..self }),
        }
    }

    /// Whether a value of so many bits is not 0 exactly where this bit, or what else tells, is set, once it is masked.
    fn is_told_by(self, mask: u64, bits: u32) -> bool {
        let all = low_bytes(bits as usize / 8);
        match self.by {
            By::Value => mask == all || mask == 1,
            By::Bit { bit, clear } => {
                let unknown = if clear < 64 { all >> clear << clear } else { 0 };
                mask >> bit & 1 == 1 && mask & unknown & !(1 << bit) == 0
            }
        }
    }

    /// What is left under a mask.
    fn masked(self, mask: u64, bits: u32) -> Option<LockOutcome> {
        let bit = match self.by {
            By::Value => 0,
            By::Bit { bit, .. } => bit,
        };
        let is_one = mask == 1 << bit;
        (is_one && self.is_told_by(mask, bits)).then_some(LockOutcome { by: By::Bit { bit, clear: 64 }, ..self })
    }

    /// With these bits turned over.
    fn turned(self, with: u64) -> Option<LockOutcome> {
        match self.by {
            By::Bit { bit, clear } if with >> bit & 1 == 1 => {
                let clear = if with == 1 << bit { clear } else { 0 };
                Some(LockOutcome { when_changed: !self.when_changed, by: By::Bit { bit, clear }, ..self })
            }
            By::Value if with == 1 => {
                Some(LockOutcome { when_changed: !self.when_changed, by: By::Bit { bit: 0, clear: 64 }, ..self })
            }
            _ => None,
        }
    }

    /// Moved by so many bits to the left.
    fn shifted(self, by: u64, bits: u32) -> Option<LockOutcome> {
        match self.by {
            By::Bit { bit, clear } if u64::from(bit) + by < u64::from(bits) => {
                let by = by as u32;
                Some(LockOutcome { by: By::Bit { bit: bit + by, clear: (clear + by).min(64) }, ..self })
            }
            _ => None,
        }
    }
}

/// Whether this condition holds where this flag is set; none where it hangs on others.
pub(super) fn says(condition: Condition, flag: Register) -> Option<bool> {
    match (condition, flag) {
        (Condition::Equal, Register::ZERO) | (Condition::Below, Register::CARRY) => Some(true),
        (Condition::NotEqual, Register::ZERO) | (Condition::NotBelow, Register::CARRY) => Some(false),
        _ => None,
    }
}

/// How many bits an operand has.
fn bits(instruction: Instruction, operand: usize) -> u32 {
    8 * instruction.size_of(operand) as u32
}

/// The immediate operand behind the first, as wide as that.
fn immediate(instruction: Instruction) -> Option<u64> {
    instruction.constant(1).map(|value| value.cast_unsigned() & low_bytes(instruction.size_of(0)))
}

impl Walk<'_> {
    /// What the result of this instruction tells of a locked operation: that of `xchg` and `setcc`, and what is made
    /// of them.
    pub(super) fn outcome(&self, instruction: Instruction, loaded: Option<Value>) -> Option<LockOutcome> {
        let known = |n| self.known(instruction, n, loaded);
        let tells = |n| match known(n)? {
            Known::LockOutcome(outcome) => Some(outcome),
            _ => None,
        };
        let size = || bits(instruction, 0);
        match instruction.operation() {
            Operation::Move => tells(1),
            Operation::Extend => {
                let outcome = tells(1)?;
                match outcome.by {
                    By::Bit { bit, clear } if clear >= bits(instruction, 1) && bit + 1 < clear => {
                        Some(LockOutcome { by: By::Bit { bit, clear: 64 }, ..outcome })
                    }
                    _ => Some(outcome),
                }
            }
            Operation::Xor => tells(0)?.turned(immediate(instruction)?),
            Operation::Not => tells(0)?.turned(low_bytes(size() as usize / 8)),
            Operation::And => tells(0)?.masked(immediate(instruction)?, size()),
            Operation::ShiftLeft => tells(0)?.shifted(instruction.constant(1)?.cast_unsigned(), size()),
            Operation::Exchange if instruction.operand(0) == Operand::Memory => {
                let put = match known(1)? {
                    Known::Constant(put) => put,
                    Known::Entry(register) | Known::Low(register) if register < 16 => self.at_begin(register)?,
                    _ => return None,
                };
                let put = put & low_bytes(size() as usize / 8);
                Some(LockOutcome { operation: self.operations, when_changed: put == 0, by: By::Value })
            }
            Operation::SetIf => {
                let flag = self.flag?;
                let when = says(instruction.condition(), flag.flag)?;
                let by = By::Bit { bit: 0, clear: 8 };
                Some(LockOutcome { operation: flag.operation, when_changed: when == flag.when_changed, by })
            }
            _ => None,
        }
    }

    /// What is known about an operand.
    fn known(&self, instruction: Instruction, operand: usize, loaded: Option<Value>) -> Option<Known> {
        match instruction.operand(operand) {
            Operand::Register(part) => Some(self.value(part).known),
            Operand::Memory => loaded.map(|loaded| loaded.known),
            _ => None,
        }
    }

    /// What the flags tell about a locked operation: this one, or the one that the operands tell about.
    pub(super) fn tries(&mut self, instruction: Instruction, loaded: Option<Value>) -> Option<Option<LockFlag>> {
        let operation = self.operations;
        let is_memory = instruction.operands().next() == Some(Operand::Memory);
        let flag = match instruction.operation() {
            Operation::Test | Operation::Compare | Operation::And => return Some(self.looks_at(instruction, loaded)),
            Operation::Exchange if is_memory => None,
            Operation::CompareExchange if is_memory => {
                Some(LockFlag { operation, flag: Register::ZERO, when_changed: true })
            }
            Operation::TestAndSet if is_memory => {
                Some(LockFlag { operation, flag: Register::CARRY, when_changed: false })
            }
            Operation::TestAndClear if is_memory => {
                Some(LockFlag { operation, flag: Register::CARRY, when_changed: true })
            }
            _ => return Some(None),
        };
        self.operations += 1;
        (self.operations <= MOST_TRIED).then_some(flag)
    }

    /// What the flags tell once a value was compared with 0, or looked at under a mask.
    fn looks_at(&self, instruction: Instruction, loaded: Option<Value>) -> Option<LockFlag> {
        let size = bits(instruction, 0);
        let is_itself = instruction.takes_one_twice();
        let all = low_bytes(size as usize / 8);
        let mask = match instruction.operation() {
            Operation::Compare if immediate(instruction) == Some(0) => all,
            Operation::Compare => return None,
            _ if is_itself => all,
            _ => immediate(instruction)?,
        };
        match self.known(instruction, 0, loaded)? {
            Known::LockOutcome(outcome) if outcome.is_told_by(mask, size) => Some(LockFlag {
                operation: outcome.operation,
                flag: Register::ZERO,
                when_changed: !outcome.when_changed,
            }),
            _ => None,
        }
    }
}
