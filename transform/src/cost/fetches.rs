//! How many x86-64 instructions code generation makes of an IR instruction: the column *fetches* of [`X86_64`].
//!
//! A division counts three, a multiplication one. The counts are those of LLVM 19 for the processor that clang takes
//! without `-march` (SSE2, no FMA); they were read from its code and compared with what
//! `opt -passes='print<cost-model>' -cost-kind=code-size` says, which misses what code generation does after its own
//! selection:
//!
//! - a choice between floating-point values or vectors is a branch and a move, of integers and addresses a conditional
//!   move;
//! - a division by a constant is no division, but one to eight other instructions; one of 64 bits by a variable first
//!   looks whether 32 bits do;
//! - an address that only loads and stores of the same block use, and a load that only the next arithmetic uses, are
//!   operands and cost nothing;
//! - mathematical intrinsics without an instruction are calls.
//!
//! [`X86_64`]: super::X86_64

use super::UNKNOWN;
use crate::llvm::{Instruction, Opcode, Shape, Type, Value};

/// How many fetches an instruction takes. `beside` says about an instruction that uses it whether both stay in one
/// block, where one may become an operand of the other.
pub(crate) fn fetches<'m>(i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
    use Opcode::*;
    let shape = i.type_of().shape();
    let registers = registers(i.type_of());
    match i.opcode() {
        LLVMPHI | LLVMBitCast | LLVMIntToPtr | LLVMPtrToInt | LLVMFreeze | LLVMExtractValue | LLVMInsertValue
        | LLVMAlloca | LLVMUnreachable | LLVMLandingPad => 0,
        LLVMTrunc => {
            if matches!(shape, Shape::Vector { .. }) {
                2 * registers
            } else {
                0
            }
        }
        LLVMGetElementPtr => address(i, beside),
        LLVMLoad => {
            if is_operand(i, beside) {
                0
            } else {
                registers
            }
        }
        LLVMStore => store(i),
        LLVMAnd if is_tested(i, beside) => 0,
        LLVMAdd | LLVMSub | LLVMAnd | LLVMOr | LLVMXor => {
            if changes_memory(i, beside) {
                0
            } else {
                registers
            }
        }
        LLVMShl | LLVMLShr | LLVMAShr => shifted(i, i.operands()[1].is_constant()),
        LLVMMul => match shape {
            Shape::Integer(bits) if bits > 64 => 5,
            Shape::Vector { bits: 16, .. } => registers,
            Shape::Vector { bits: 32, .. } => 6 * registers,
            Shape::Vector { .. } => 8 * registers,
            _ => 1,
        },
        LLVMUDiv | LLVMSDiv | LLVMURem | LLVMSRem => divided(i, Some(i.operands()[1]).filter(|by| by.is_constant())),
        LLVMFAdd | LLVMFSub | LLVMFMul | LLVMFDiv => match shape {
            Shape::Float(128) => UNKNOWN,
            Shape::Float(16) => 3 * CONVERSION_OF_HALF,
            _ => registers,
        },
        LLVMFRem => lanes(shape) * UNKNOWN,
        LLVMFNeg => registers,
        LLVMICmp | LLVMFCmp => comparison(i, beside),
        LLVMZExt | LLVMSExt => extension(i, shape, beside),
        LLVMFPExt | LLVMFPTrunc | LLVMFPToSI | LLVMSIToFP | LLVMFPToUI | LLVMUIToFP => conversion(i, shape),
        LLVMSelect => {
            let operands = i.operands();
            let condition = i64::from(!is_comparison(operands[0]));
            condition + Choices::of([(operands[1], operands[2])]).fetches() - 1
        }
        LLVMExtractElement | LLVMShuffleVector => registers.max(1),
        LLVMInsertElement => 2,
        LLVMSwitch => 4,
        LLVMCall => call(i),
        _ => 1,
    }
}

/// As [`fetches`], for one instruction that stands for two with different second operands: then a constant is not
/// constant any more.
pub(crate) fn fetches_of_joined<'m>(i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
    use Opcode::*;
    match i.opcode() {
        LLVMUDiv | LLVMSDiv | LLVMURem | LLVMSRem => divided(i, None),
        // The distance is chosen into the register where it must be.
        LLVMShl | LLVMLShr | LLVMAShr if matches!(i.type_of().shape(), Shape::Integer(_)) => shifted(i, false) - 1,
        LLVMShl | LLVMLShr | LLVMAShr => shifted(i, false),
        _ => fetches(i, beside),
    }
}

/// Half-precision numbers are converted by the run-time library.
const CONVERSION_OF_HALF: i64 = 10;

/// How many registers values of a type take: 64 bits each, vectors 128.
pub(super) fn registers(of: Type<'_>) -> i64 {
    match of.shape() {
        Shape::Integer(bits) => i64::from(bits.div_ceil(64)),
        Shape::Vector { bits, lanes, .. } => i64::from((bits * lanes).div_ceil(128)),
        Shape::Other => 2,
        _ => 1,
    }
}

pub(super) fn lanes(shape: Shape) -> i64 {
    if let Shape::Vector { lanes, .. } = shape { i64::from(lanes) } else { 1 }
}

/// The one instruction that uses it.
fn only_user<'m>(i: Instruction<'m>) -> Option<Instruction<'m>> {
    let uses = i.as_value().uses();
    if let [only] = uses[..] { Some(only.user) } else { None }
}

/// Whether an instruction accesses memory at this address.
fn accesses<'m>(user: Instruction<'m>, address: Value<'m>) -> bool {
    match user.opcode() {
        Opcode::LLVMLoad => true,
        Opcode::LLVMStore => user.operands()[1] == address && user.operands()[0] != address,
        _ => false,
    }
}

/// An address: nothing where it is only a part of accesses, which can add a base, one scaled index and a constant.
fn address<'m>(i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
    let operands = i.operands();
    let variable = operands.iter().skip(1).filter(|o| !o.is_constant()).count() as i64;
    let uses = i.as_value().uses();
    let folded = !uses.is_empty() && uses.iter().all(|u| accesses(u.user, i.as_value()) && beside(u.user));
    if folded { (variable - 1).max(0) } else { variable.max(1) }
}

/// Whether a load becomes an operand of the arithmetic that uses it.
fn is_operand<'m>(load: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> bool {
    use Opcode::*;
    let Some(user) = only_user(load).filter(|&user| beside(user)) else { return false };
    let operands = user.operands();
    let is_second = operands.get(1) == Some(&load.as_value());
    match user.opcode() {
        LLVMAdd | LLVMMul | LLVMAnd | LLVMOr | LLVMXor | LLVMFAdd | LLVMFMul => {
            let taken =
                operands[1].opcode() == Some(LLVMLoad) || (operands[1].is_constant() && user.opcode() != LLVMMul);
            is_second || !taken || changes_memory(user, beside)
        }
        LLVMSub | LLVMFSub | LLVMFDiv => is_second || changes_memory(user, beside),
        LLVMICmp => true,
        LLVMFCmp => is_second,
        LLVMUDiv | LLVMSDiv | LLVMURem | LLVMSRem => is_second,
        LLVMZExt | LLVMSExt | LLVMFPExt | LLVMSIToFP => true,
        _ => false,
    }
}

/// Whether it is a sum (or the like) of what memory holds and something else that goes back to the same place: one
/// instruction with the store.
fn changes_memory<'m>(i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> bool {
    let scalar = matches!(i.type_of().shape(), Shape::Integer(bits) if bits <= 64);
    let Some(user) = only_user(i).filter(|&user| scalar && beside(user)) else { return false };
    if user.opcode() != Opcode::LLVMStore || user.operands()[0] != i.as_value() {
        return false;
    }
    let to = user.operands()[1];
    let loads = |v: &Value<'m>| {
        let load = v.as_instruction().filter(|load| load.opcode() == Opcode::LLVMLoad && beside(*load));
        load.is_some_and(|load| load.operands()[0] == to && only_user(load).is_some())
    };
    i.operands().iter().any(loads)
}

/// Floating-point constants come from memory, or through an integer register.
fn store(i: Instruction<'_>) -> i64 {
    let value = i.operands()[0];
    let wide = value.type_of().shape() == Shape::Float(64) && value.is_constant();
    registers(value.type_of()) + i64::from(wide)
}

/// A distance that is a variable must be moved to its register.
fn shifted(i: Instruction<'_>, by_constant: bool) -> i64 {
    let registers = registers(i.type_of());
    match i.type_of().shape() {
        Shape::Integer(bits) if bits > 64 => {
            if by_constant {
                3
            } else {
                7
            }
        }
        Shape::Integer(_) => {
            if by_constant {
                1
            } else {
                2
            }
        }
        _ => {
            if by_constant {
                registers
            } else {
                6 * registers
            }
        }
    }
}

fn divided(i: Instruction<'_>, by: Option<Value<'_>>) -> i64 {
    let shape = i.type_of().shape();
    let bits = match shape {
        Shape::Integer(bits) => bits,
        Shape::Vector { bits, .. } => bits,
        _ => 64,
    };
    let signed = matches!(i.opcode(), Opcode::LLVMSDiv | Opcode::LLVMSRem);
    let remainder = matches!(i.opcode(), Opcode::LLVMSRem | Opcode::LLVMURem);
    if bits > 64 {
        return UNKNOWN;
    }
    let one = match by.map(|by| by.as_number().map(i64::unsigned_abs)) {
        Some(Some(by)) if by.is_power_of_two() && !signed => 1,
        Some(Some(by)) if by.is_power_of_two() => {
            if remainder {
                5
            } else {
                4
            }
        }
        Some(_) => (if signed { 6 } else { 4 }) + if remainder { 3 } else { 0 },
        // Whether the high halves are zero is looked at first: then half the width does.
        None if bits == 64 => 8,
        None => 2,
    };
    let lanes = lanes(shape);
    if lanes > 1 { lanes * (one + 2) } else { one }
}

/// Whether its flags go straight to who asks for them.
pub(crate) fn is_comparison(value: Value<'_>) -> bool {
    matches!(value.opcode(), Some(Opcode::LLVMICmp | Opcode::LLVMFCmp))
}

fn comparison<'m>(i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
    let by_flags = |user: Instruction<'m>| {
        let chooses = user.opcode() == Opcode::LLVMSelect && user.operands()[0] == i.as_value();
        (chooses || user.condition().is_some()) && beside(user)
    };
    let kept = i.as_value().uses().iter().any(|u| !by_flags(u.user));
    let registers = registers(i.operands()[0].type_of());
    registers + i64::from(kept)
}

fn extension<'m>(i: Instruction<'m>, shape: Shape, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
    let from = i.operands()[0];
    let loaded = from.as_instruction().is_some_and(|load| load.opcode() == Opcode::LLVMLoad && beside(load));
    match (shape, from.type_of().shape()) {
        (Shape::Vector { .. }, _) => 2 * registers(i.type_of()),
        (Shape::Integer(bits), _) if bits > 64 => 2,
        (Shape::Integer(64), Shape::Integer(32)) if i.opcode() == Opcode::LLVMZExt => 0,
        // The load extends; it is counted here, as an operand of this.
        _ => i64::from(loaded || !is_comparison(from)),
    }
}

fn conversion(i: Instruction<'_>, shape: Shape) -> i64 {
    use Opcode::*;
    let from = i.operands()[0].type_of().shape();
    let half = [shape, from].iter().any(|s| matches!(s, Shape::Float(16 | 128)));
    let x87 = [shape, from].contains(&Shape::Float(80));
    let one = match (i.opcode(), from, shape) {
        _ if half => CONVERSION_OF_HALF,
        (LLVMFPToSI | LLVMFPToUI, ..) if x87 => 7,
        (LLVMSIToFP | LLVMUIToFP, ..) if x87 => 3,
        _ if x87 => 2,
        (LLVMFPToUI, _, Shape::Integer(64)) => 6,
        (LLVMUIToFP, Shape::Integer(64), _) => 8,
        (LLVMUIToFP, ..) => 3,
        // The register is zeroed first, so that the instruction need not wait for its old value.
        (LLVMSIToFP, ..) => 2,
        _ => 1,
    };
    one * if lanes(shape) > 1 { lanes(shape) } else { 1 }
}

/// Arithmetic of intrinsics that code generation has no instruction for: some moves, and what the library needs.
fn call(i: Instruction<'_>) -> i64 {
    let Some(callee) = i.callee() else { return 1 };
    if callee.is_inline_assembly() {
        return 1;
    }
    let moves = i.arguments().len() as i64;
    if !callee.is_intrinsic() {
        return 1 + moves;
    }
    let (shape, registers) = (i.type_of().shape(), registers(i.type_of()));
    let name = callee.name();
    let kind = name.trim_start_matches("llvm.").split('.').next().unwrap_or_default();
    let float = matches!(shape, Shape::Float(_) | Shape::Vector { float: true, .. });
    match kind {
        "lifetime" | "assume" | "invariant" | "experimental" | "dbg" | "annotation" | "expect" | "launder"
        | "strip" | "sideeffect" | "donothing" | "is" | "objectsize" => 0,
        "fmuladd" => 2 * registers,
        "fabs" | "sqrt" | "canonicalize" => registers,
        "copysign" => 3 * registers,
        "minnum" | "maxnum" => 5 * registers,
        "minimum" | "maximum" => 10 * registers,
        "smax" | "smin" | "umax" | "umin" => 2 * registers,
        "abs" => 3 * registers,
        "sadd" | "uadd" | "ssub" | "usub" | "smul" | "umul" => 2,
        "ctpop" => 12,
        "ctlz" => 3,
        "cttz" | "bswap" => 1,
        "bitreverse" => 14,
        "fshl" | "fshr" => 2 - i64::from(i.arguments()[2].is_constant()),
        "memcpy" | "memmove" | "memset" => match i.arguments()[2].as_number() {
            // Two moves of 16 bytes each, one to fill.
            Some(bytes @ 0..=128) => (bytes as u64).div_ceil(16) as i64 * if kind == "memset" { 1 } else { 2 },
            _ => UNKNOWN + moves,
        },
        // What is left of those on numbers is in the library: sin, pow, floor, round, fma.
        _ if float => lanes(shape) * (UNKNOWN + moves),
        _ => 2,
    }
}

/// Whether an intrinsic becomes the call of a function in the library, which is worth more than a few instructions.
pub(crate) fn is_library_call(i: Instruction<'_>) -> bool {
    i.callee().is_some_and(Value::is_intrinsic) && call(i) >= UNKNOWN
}

/// Choices by one condition, side by side in the code.
#[derive(Default)]
pub(crate) struct Choices {
    /// Conditional moves, and moves of constants for them.
    moves: i64,
    /// Moves under a branch, and what must be there before.
    under_branch: i64,
    /// Whether some of those come from both sides.
    both_sides: bool,
}

impl Choices {
    /// The choices between these values.
    pub(crate) fn of<'m>(values: impl IntoIterator<Item = (Value<'m>, Value<'m>)>) -> Choices {
        let mut choices = Choices::default();
        for (yes, no) in values {
            choices.add(yes, no);
        }
        choices
    }

    /// One more.
    pub(crate) fn add(&mut self, yes: Value<'_>, no: Value<'_>) {
        let constants = i64::from(yes.is_constant()) + i64::from(no.is_constant());
        let registers = registers(yes.type_of());
        match yes.type_of().shape() {
            // A constant is moved to a register first; making a choice between two constants from the flag takes as
            // long.
            Shape::Integer(_) | Shape::Pointer => self.moves += registers * (1 + constants),
            _ => {
                self.under_branch += registers * if constants == 0 { 1 } else { 2 };
                self.both_sides |= constants == 2;
            }
        }
    }

    /// How many fetches they are together, where lanes of both sides come by. A look at the condition is one.
    pub(crate) fn fetches(&self) -> i64 {
        let looks = i64::from(self.moves > 0 || self.under_branch > 0);
        let branch = i64::from(self.under_branch > 0) + i64::from(self.both_sides);
        looks + branch + self.moves + self.under_branch
    }
}

/// How many copies an instruction needs first: x86-64 writes the result of most arithmetic over its first operand,
/// which may be needed again. A sum, a product with a constant and a shift to the left by up to three bits have
/// instructions that write elsewhere. `is_free` says about an operand whether it is in a register and may be
/// overwritten.
pub(crate) fn copies<'m>(
    i: Instruction<'m>,
    beside: &dyn Fn(Instruction<'m>) -> bool,
    is_free: &dyn Fn(usize) -> bool,
) -> i64 {
    use Opcode::*;
    let operands = i.operands();
    let scalar = matches!(i.type_of().shape(), Shape::Integer(_));
    let number = || operands[1].as_number();
    let in_memory =
        |v: Value<'m>| v.as_instruction().is_some_and(|load| load.opcode() == LLVMLoad && is_operand(load, beside));
    let free = |operand: usize| is_free(operand) && !in_memory(operands[operand]);
    let destroys = match i.opcode() {
        LLVMAdd if scalar => false,
        LLVMSub | LLVMMul if scalar && operands[1].is_constant() => false,
        LLVMShl if scalar && number().is_some_and(|by| (0..4).contains(&by)) => false,
        // Of 8 and 16 bits: a move that extends.
        LLVMAnd if scalar && number().is_some_and(|mask| [0xff, 0xffff].contains(&mask)) => false,
        LLVMAnd if is_tested(i, beside) => false,
        LLVMAdd | LLVMMul | LLVMAnd | LLVMOr | LLVMXor | LLVMFAdd | LLVMFMul => !free(0) && !free(1),
        // A constant, or what memory holds, is moved to a register all the same.
        LLVMSub | LLVMFSub | LLVMFDiv | LLVMShl | LLVMLShr | LLVMAShr => {
            !is_free(0) && !operands[0].is_constant() && !in_memory(operands[0])
        }
        LLVMFNeg => !is_free(0),
        _ => false,
    };
    if destroys && !changes_memory(i, beside) { registers(i.type_of()) } else { 0 }
}

/// Whether bits are only compared with zero, which is one instruction with the comparison.
fn is_tested<'m>(i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> bool {
    let user = only_user(i).filter(|&user| user.opcode() == Opcode::LLVMICmp && beside(user));
    user.is_some_and(|user| user.operands()[1].as_number() == Some(0))
}
