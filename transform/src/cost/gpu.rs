//! How many instructions a GPU has for an IR instruction, as the optimiser leaves it for NVIDIA's.
//!
//! What was counted on an NVIDIA H200 by operation and width is taken from there: divisions, square roots, products
//! of 64 bits. The rest is what ptxas makes of it: a product is one instruction with the sum behind it, a shift to the
//! left too, three operands go into one logical operation, and an address with a constant is a part of the access. A
//! choice is one instruction, and so is each of a vector's numbers, since a GPU has no vectors.
//!
//! *Limitation*: what ptxas leaves out, moves out of loops, or makes once for two blocks is counted where the IR has
//! it.

use super::fetches::lanes;
use crate::llvm::{Block, Instruction, Opcode, Shape, Value};

/// An ordinary instruction.
pub(super) const ONE: u32 = 10;
/// One that is often folded into another.
pub(super) const HALF: u32 = 5;

/// In tenths. A call is one; what it calls has a count of its own.
pub(crate) fn tenths(i: Instruction<'_>) -> u32 {
    let shape = i.type_of().shape();
    lanes(shape).unsigned_abs() as u32 * of_number(i, width(shape))
}

/// Whether NVIDIA's compiler calls a function for it, if only where operands are rare: a division of floats or of
/// numbers of 64 bits, a root, and a call of what has code.
pub(crate) fn calls(i: Instruction<'_>) -> bool {
    use Opcode::*;
    match i.opcode() {
        LLVMFDiv | LLVMFRem => true,
        LLVMUDiv | LLVMURem | LLVMSDiv | LLVMSRem => width(i.type_of().shape()) > 32 && !i.operand(1).is_constant(),
        LLVMCall | LLVMInvoke => i.callee().is_some_and(|callee| {
            let is_root = || callee.name().starts_with("llvm.sqrt");
            !callee.is_inline_assembly() && (!callee.is_function() || !callee.is_intrinsic() || is_root())
        }),
        _ => false,
    }
}

/// Of the copies at a block's end that the phis behind it need: of constants, and of values that others use too, in
/// tenths. Others end in the register in which the phi begins. Some are left out, or are a part of what is predicated.
pub(crate) fn copies(block: Block<'_>) -> u32 {
    let needs = |phi: Instruction<'_>| {
        let value = phi.incoming_from(block).filter(|value| *value != phi.as_value() && !value.is_undefined())?;
        let is_elsewhere = |of: &crate::llvm::Use<'_>| of.user != phi && of.user.block() != Some(block);
        let is_needed = value.is_constant() || value.uses().iter().any(is_elsewhere);
        let shape = phi.type_of().shape();
        is_needed.then(|| lanes(shape).unsigned_abs() as u32 * width(shape).div_ceil(32).max(1) * HALF)
    };
    let mut behind = block.terminator().successors();
    behind.dedup();
    behind.into_iter().flat_map(Block::phis).filter_map(needs).sum()
}

/// How many bits a number of this shape has; of an address 64, and of what is no number 32.
pub(super) fn width(shape: Shape) -> u32 {
    match shape {
        Shape::Integer(bits) | Shape::Float(bits) | Shape::Vector { bits, .. } => bits,
        Shape::Pointer => 64,
        Shape::Other => 32,
    }
}

/// Of an instruction whose result's numbers have so many bits.
fn of_number(i: Instruction<'_>, bits: u32) -> u32 {
    use Opcode::*;
    let registers = bits.div_ceil(32).max(1);
    let by_width = |narrow, wide| if bits > 32 { wide } else { narrow };
    let second = || i.operand(1);
    match i.opcode() {
        LLVMAdd | LLVMSub => by_width(ONE, ONE + HALF),
        LLVMFAdd | LLVMFSub | LLVMFNeg => ONE,
        LLVMMul | LLVMFMul if is_summand(i) => by_width(0, if i.opcode() == LLVMMul { 2 * ONE } else { 0 }),
        LLVMMul => by_width(ONE, 3 * ONE),
        LLVMFMul => ONE,
        LLVMAnd | LLVMOr | LLVMXor if bits == 1 => HALF,
        LLVMAnd | LLVMOr | LLVMXor => registers * if is_part_of_logic(i) { HALF } else { ONE },
        LLVMShl if second().is_constant() && is_summand(i) => 0,
        LLVMShl | LLVMLShr | LLVMAShr => registers * ONE,
        LLVMUDiv | LLVMURem | LLVMSDiv | LLVMSRem => division(i, bits),
        LLVMFDiv if second().is_constant() => by_width(6 * ONE, 13 * ONE),
        LLVMFDiv => by_width(10 * ONE, 16 * ONE),
        LLVMFRem => by_width(20 * ONE, 59 * ONE),
        LLVMICmp | LLVMFCmp => {
            let compared = second().type_of().shape();
            let wide = matches!(compared, Shape::Integer(33..) | Shape::Pointer);
            ONE + if wide { ONE } else { 0 }
        }
        LLVMSelect => registers * ONE,
        LLVMSExt if bits > 32 => HALF,
        LLVMFPToSI | LLVMFPToUI | LLVMSIToFP | LLVMUIToFP | LLVMFPExt | LLVMFPTrunc => ONE,
        LLVMGetElementPtr => address(i),
        LLVMLoad | LLVMStore | LLVMAtomicRMW | LLVMFence | LLVMRet => ONE,
        LLVMAtomicCmpXchg => ONE + HALF,
        LLVMBr | LLVMSwitch | LLVMIndirectBr if i.successors().len() > 1 => ONE,
        LLVMCall | LLVMInvoke => call(i, bits),
        _ => 0,
    }
}

/// The one instruction that uses it, in its own block.
fn only_user(i: Instruction<'_>) -> Option<Instruction<'_>> {
    let uses = i.as_value().few_uses(2)?;
    let [only] = uses[..] else { return None };
    Some(only.user).filter(|user| user.block() == i.block())
}

/// Whether a sum takes it that a GPU makes in the same instruction.
fn is_summand(i: Instruction<'_>) -> bool {
    use Opcode::*;
    only_user(i).is_some_and(|user| matches!(user.opcode(), LLVMAdd | LLVMSub | LLVMFAdd | LLVMFSub))
}

/// Whether it is one of two logical operations that a GPU makes in one.
fn is_part_of_logic(i: Instruction<'_>) -> bool {
    use Opcode::*;
    only_user(i).is_some_and(|user| matches!(user.opcode(), LLVMAnd | LLVMOr | LLVMXor))
}

/// A base and an index are one instruction; a constant is a part of the access.
fn address(i: Instruction<'_>) -> u32 {
    let variable = i.operands().iter().skip(1).filter(|index| !index.is_constant()).count() as u32;
    let accesses = |user: Instruction<'_>| matches!(user.opcode(), Opcode::LLVMLoad | Opcode::LLVMStore);
    match variable {
        0 if i.as_value().uses().iter().all(|of| accesses(of.user)) => 0,
        0 => ONE,
        1 => HALF,
        _ => (variable - 1) * ONE,
    }
}

fn division(i: Instruction<'_>, bits: u32) -> u32 {
    use Opcode::*;
    let is_signed = matches!(i.opcode(), LLVMSDiv | LLVMSRem);
    let is_remainder = matches!(i.opcode(), LLVMURem | LLVMSRem);
    let count = match i.operand(1).as_number().map(i64::unsigned_abs) {
        _ if bits > 64 => 192,
        Some(by) if by.is_power_of_two() => 1 + 2 * u32::from(is_signed),
        Some(_) => (if bits > 32 { 8 } else { 2 }) + 2 * u32::from(is_signed) + 2 * u32::from(is_remainder),
        None => return division_by_any(i, bits),
    };
    count * ONE
}

/// Of a division, or a remainder, by a value of up to 64 bits that is no constant, or that differs.
pub(super) fn division_by_any(i: Instruction<'_>, bits: u32) -> u32 {
    let is_signed = matches!(i.opcode(), Opcode::LLVMSDiv | Opcode::LLVMSRem);
    ONE * match (bits > 32, is_signed) {
        (true, true) => 95,
        (true, false) => 79,
        (false, true) => 25,
        (false, false) => 18,
    }
}

fn call(i: Instruction<'_>, bits: u32) -> u32 {
    let by_width = |narrow, wide| if bits > 32 { wide } else { narrow };
    let Some(callee) = i.callee() else { return ONE };
    if callee.is_inline_assembly() {
        // Ours do nothing.
        return if callee.assembly().is_some_and(|text| text.starts_with("nopl ")) { 0 } else { ONE };
    }
    if !callee.is_intrinsic() {
        return ONE;
    }
    let name = callee.name();
    match name.trim_start_matches("llvm.").split('.').next().unwrap_or_default() {
        "fmuladd" | "fma" | "fabs" | "copysign" | "canonicalize" | "floor" | "ceil" | "trunc" | "rint"
        | "nearbyint" | "abs" | "bitreverse" | "bswap" => ONE,
        "sqrt" => by_width(5 * ONE, 13 * ONE),
        "smax" | "smin" | "umax" | "umin" => by_width(ONE, 3 * ONE),
        "minnum" | "maxnum" | "minimum" | "maximum" => by_width(ONE, 7 * ONE),
        "sadd" | "uadd" | "ssub" | "usub" | "smul" | "umul" | "round" => 2 * ONE,
        "ctpop" => by_width(ONE, 2 * ONE),
        "ctlz" => by_width(ONE, 6 * ONE),
        "cttz" => by_width(2 * ONE, 6 * ONE),
        "fshl" | "fshr" if i.arguments().get(2).copied().is_some_and(Value::is_constant) => by_width(ONE, 2 * ONE),
        "fshl" | "fshr" => by_width(2 * ONE, 7 * ONE),
        // By words of four bytes.
        "memcpy" | "memmove" | "memset" => match i.arguments().get(2).and_then(|bytes| bytes.as_number()) {
            Some(bytes @ 0..=128) => {
                let words = (bytes.unsigned_abs() as u32).div_ceil(4);
                words * ONE * if name.contains("memset") { 1 } else { 2 }
            }
            _ => ONE,
        },
        _ => 0,
    }
}
