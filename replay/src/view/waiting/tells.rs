//! What values and flags tell of a locked operation of a turn: whether it changed memory.
//!
//! A lock that is tried over and over changes nothing as long as another has it, and only what the code does with the
//! result shows that. Compilers say it in many ways: the flags of `cmpxchg`, the value that `xchg` found, one bit of a
//! byte that lay in a slot of the frame meanwhile.

use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind};

use super::registers::{CARRY, ZERO, low_bytes};
use super::turn::{Known, Value, Walk};

/// Locked operations of a turn, at most.
const MOST_TRIED: u32 = 32;

/// A value that tells whether the locked operation of this number changed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
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
pub(super) struct Tried {
    pub(super) operation: u32,
    pub(super) flag: usize,
    /// What it is where memory was changed.
    pub(super) when_changed: bool,
}

impl Told {
    /// What is told where only so many low bits are of this value.
    pub(super) fn within(self, bits: u32) -> Option<Told> {
        match self.by {
            By::Value => None,
            By::Bit { bit, clear } => Some(Told { by: By::Bit { bit, clear: clear.min(bits) }, ..self }),
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
    fn masked(self, mask: u64, bits: u32) -> Option<Told> {
        let bit = match self.by {
            By::Value => 0,
            By::Bit { bit, .. } => bit,
        };
        let is_one = mask == 1 << bit;
        (is_one && self.is_told_by(mask, bits)).then_some(Told { by: By::Bit { bit, clear: 64 }, ..self })
    }

    /// With these bits turned over.
    fn turned(self, with: u64) -> Option<Told> {
        match self.by {
            By::Bit { bit, clear } if with >> bit & 1 == 1 => {
                let clear = if with == 1 << bit { clear } else { 0 };
                Some(Told { when_changed: !self.when_changed, by: By::Bit { bit, clear }, ..self })
            }
            By::Value if with == 1 => {
                Some(Told { when_changed: !self.when_changed, by: By::Bit { bit: 0, clear: 64 }, ..self })
            }
            _ => None,
        }
    }

    /// Moved by so many bits to the left.
    fn shifted(self, by: u64, bits: u32) -> Option<Told> {
        match self.by {
            By::Bit { bit, clear } if u64::from(bit) + by < u64::from(bits) => {
                let by = by as u32;
                Some(Told { by: By::Bit { bit: bit + by, clear: (clear + by).min(64) }, ..self })
            }
            _ => None,
        }
    }
}

/// Whether this condition holds where this flag is set; none where it hangs on others.
pub(super) fn says(condition: ConditionCode, flag: usize) -> Option<bool> {
    match (condition, flag) {
        (ConditionCode::e, ZERO) | (ConditionCode::b, CARRY) => Some(true),
        (ConditionCode::ne, ZERO) | (ConditionCode::ae, CARRY) => Some(false),
        _ => None,
    }
}

/// How many bits an operand has.
fn bits(instruction: &Instruction, operand: u32) -> u32 {
    8 * match instruction.op_kind(operand) {
        OpKind::Register => instruction.op_register(operand).size() as u32,
        _ => instruction.memory_size().size() as u32,
    }
}

/// The immediate operand behind the first, as wide as that.
fn immediate(instruction: &Instruction) -> Option<u64> {
    instruction.try_immediate(1).ok().map(|value| value & low_bytes(bits(instruction, 0) as usize / 8))
}

impl Walk<'_> {
    /// What the result of this instruction tells of a locked operation: that of `xchg` and `setcc`, and what is made
    /// of them.
    pub(super) fn told(&self, instruction: &Instruction, loaded: Option<Value>) -> Option<Told> {
        let known = |n| self.known(instruction, n, loaded);
        let tells = |n| match known(n)? {
            Known::Tells(told) => Some(told),
            _ => None,
        };
        let size = || bits(instruction, 0);
        match instruction.mnemonic() {
            Mnemonic::Mov => tells(1),
            Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => {
                let told = tells(1)?;
                match told.by {
                    By::Bit { bit, clear } if clear >= bits(instruction, 1) && bit + 1 < clear => {
                        Some(Told { by: By::Bit { bit, clear: 64 }, ..told })
                    }
                    _ => Some(told),
                }
            }
            Mnemonic::Xor => tells(0)?.turned(immediate(instruction)?),
            Mnemonic::Not => tells(0)?.turned(low_bytes(size() as usize / 8)),
            Mnemonic::And => tells(0)?.masked(immediate(instruction)?, size()),
            Mnemonic::Shl => tells(0)?.shifted(instruction.try_immediate(1).ok()?, size()),
            Mnemonic::Xchg if instruction.op0_kind() == OpKind::Memory => {
                let put = match known(1)? {
                    Known::Constant(put) => put,
                    Known::Entry(register) | Known::Low(register) if register < 16 => self.at_begin(register)?,
                    _ => return None,
                };
                let put = put & low_bytes(size() as usize / 8);
                Some(Told { operation: self.operations, when_changed: put == 0, by: By::Value })
            }
            Mnemonic::Sete | Mnemonic::Setne | Mnemonic::Setb | Mnemonic::Setae => {
                let tried = self.tried?;
                let when = says(instruction.condition_code(), tried.flag)?;
                let by = By::Bit { bit: 0, clear: 8 };
                Some(Told { operation: tried.operation, when_changed: when == tried.when_changed, by })
            }
            _ => None,
        }
    }

    /// What is known about an operand.
    fn known(&self, instruction: &Instruction, operand: u32, loaded: Option<Value>) -> Option<Known> {
        match instruction.op_kind(operand) {
            OpKind::Register => Some(self.value(instruction.op_register(operand)).known),
            OpKind::Memory => loaded.map(|loaded| loaded.known),
            _ => None,
        }
    }

    /// What the flags tell about a locked operation: this one, or the one that the operands tell about.
    pub(super) fn tries(&mut self, instruction: &Instruction, loaded: Option<Value>) -> Option<Option<Tried>> {
        let operation = self.operations;
        let is_memory = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Memory;
        let tried = match instruction.mnemonic() {
            Mnemonic::Test | Mnemonic::Cmp | Mnemonic::And => return Some(self.looks_at(instruction, loaded)),
            Mnemonic::Xchg if is_memory => None,
            Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b if is_memory => {
                Some(Tried { operation, flag: ZERO, when_changed: true })
            }
            Mnemonic::Bts if is_memory => Some(Tried { operation, flag: CARRY, when_changed: false }),
            Mnemonic::Btr if is_memory => Some(Tried { operation, flag: CARRY, when_changed: true }),
            _ => return Some(None),
        };
        self.operations += 1;
        (self.operations <= MOST_TRIED).then_some(tried)
    }

    /// What the flags tell once a value was compared with 0, or looked at under a mask.
    fn looks_at(&self, instruction: &Instruction, loaded: Option<Value>) -> Option<Tried> {
        let size = bits(instruction, 0);
        let is_itself = instruction.op1_kind() == OpKind::Register
            && instruction.op0_kind() == OpKind::Register
            && instruction.op0_register() == instruction.op1_register();
        let all = low_bytes(size as usize / 8);
        let mask = match instruction.mnemonic() {
            Mnemonic::Cmp if immediate(instruction) == Some(0) => all,
            Mnemonic::Cmp => return None,
            _ if is_itself => all,
            _ => immediate(instruction)?,
        };
        match self.known(instruction, 0, loaded)? {
            Known::Tells(told) if told.is_told_by(mask, size) => {
                Some(Tried { operation: told.operation, flag: ZERO, when_changed: !told.when_changed })
            }
            _ => None,
        }
    }
}
