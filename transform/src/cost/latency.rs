//! How many cycles pass until the result of an IR instruction can be used: the column *latency* of [`X86_64`].
//!
//! They are those of the chain of x86-64 instructions that code generation makes of it, for AMD's Zen 3, as LLVM's
//! scheduling model has them (`llvm-mca-19 -mcpu=znver3`); the least time of an access that hits the first cache. So an
//! addition takes one cycle, a multiplication three, a load of a number five. Where nothing better is known, each
//! instruction of the chain is taken to last one cycle.
//!
//! [`X86_64`]: super::X86_64

use super::fetches::{fetches, lanes};
use crate::llvm::{Instruction, Opcode, Shape, Value};

/// The division of vectors goes lane by lane.
const MOVES_OF_A_LANE: i64 = 2;

/// How many cycles pass until the result can be used. `beside` is as for [`fetches`].
pub(super) fn latency<'m>(i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
    use Opcode::*;
    let shape = i.type_of().shape();
    match i.opcode() {
        // An operand of another instruction is loaded all the same.
        LLVMLoad => match shape {
            Shape::Integer(_) | Shape::Pointer => 5,
            _ => 8,
        },
        LLVMStore => 1,
        // A sum that goes back to memory is one instruction with the store, and still a sum.
        LLVMAdd | LLVMSub | LLVMAnd | LLVMOr | LLVMXor => match shape {
            Shape::Integer(bits) => i64::from(bits.div_ceil(64)),
            _ => 1,
        },
        LLVMMul => match shape {
            Shape::Vector { bits: 16, .. } => 3,
            Shape::Vector { bits: 32, .. } => 6,
            Shape::Vector { .. } => 8,
            Shape::Integer(bits) if bits > 64 => 5,
            _ => 3,
        },
        LLVMShl | LLVMLShr | LLVMAShr => match shape {
            Shape::Integer(bits) if bits <= 64 => 1,
            _ => fetches(i, beside),
        },
        LLVMUDiv | LLVMSDiv | LLVMURem | LLVMSRem => divided(i, shape, beside),
        LLVMFAdd | LLVMFSub | LLVMFMul => match shape {
            Shape::Float(80) => 7,
            Shape::Float(16 | 128) => fetches(i, beside),
            _ => 3,
        },
        LLVMFDiv => match shape {
            Shape::Float(32) | Shape::Vector { bits: 32, .. } => 11,
            Shape::Float(64) | Shape::Vector { bits: 64, .. } => 13,
            Shape::Float(80) => 15,
            _ => fetches(i, beside),
        },
        LLVMFPExt | LLVMFPTrunc if plain_floats(i) => 3,
        LLVMSIToFP if plain_floats(i) => 4,
        LLVMFPToSI if plain_floats(i) => 2,
        LLVMCall => call(i, shape).unwrap_or_else(|| fetches(i, beside)),
        _ => fetches(i, beside),
    }
}

/// Whether it is between numbers of 32 and 64 bits.
fn plain_floats(i: Instruction<'_>) -> bool {
    let plain = |shape: Shape| matches!(shape, Shape::Float(32 | 64) | Shape::Integer(32 | 64));
    plain(i.type_of().shape()) && plain(i.operands()[0].type_of().shape())
}

fn divided<'m>(i: Instruction<'m>, shape: Shape, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
    let bits = match shape {
        Shape::Integer(bits) => bits,
        Shape::Vector { bits, .. } => bits,
        _ => 64,
    };
    let by: Value<'m> = i.operands()[1];
    let one = match bits {
        _ if bits > 64 => return fetches(i, beside),
        // A constant is multiplied by: two cycles more than a sum.
        _ if by.as_number().is_some_and(|by| by.unsigned_abs().is_power_of_two()) => return fetches(i, beside),
        _ if by.is_constant() => return fetches(i, beside) + 2,
        0..=8 => 10,
        9..=32 => 13,
        _ => 17,
    };
    if lanes(shape) > 1 { lanes(shape) * (one + MOVES_OF_A_LANE) } else { one }
}

/// Intrinsics that code generation has an instruction for.
fn call(i: Instruction<'_>, shape: Shape) -> Option<i64> {
    let callee = i.callee().filter(|callee| callee.is_intrinsic())?;
    let name = callee.name();
    let double = matches!(shape, Shape::Float(64) | Shape::Vector { bits: 64, .. });
    let plain = double || matches!(shape, Shape::Float(32) | Shape::Vector { bits: 32, .. });
    match name.trim_start_matches("llvm.").split('.').next()? {
        "sqrt" if plain => Some(if double { 21 } else { 15 }),
        "fmuladd" if plain => Some(6),
        _ => None,
    }
}
