//! Which two instructions can be one.
//!
//! Both must have the same opcode, types and number of operands, and then:
//!
//! - comparisons have the same predicate, or the one has the other's predicate with its operands exchanged;
//! - address computations have the same element type, and the same fields of structures;
//! - loads and stores are neither volatile nor atomic; the one promises the smaller alignment;
//! - casts go between the same types;
//! - calls call the same function with attributes of the same meaning, and no argument differs that must be constant;
//!   calls that are convergent, return twice, or must not be merged or duplicated are no pair, nor is assembly.
//!
//! The one keeps of flags (`nuw`, `nsw`, `exact`, `inbounds`, fast-math, …) what both had, and of metadata (aliases,
//! ranges, …) what holds for both.

use crate::alike;
use crate::llvm::{Instruction, Opcode, Value};

/// Whether two instructions can be one, with choices between their operands.
pub(super) fn can_be_one<'m>(a: Instruction<'m>, b: Instruction<'m>) -> bool {
    if a.opcode() != b.opcode() {
        return false;
    }
    if a.compares_the_other_way_round(b) {
        return true;
    }
    if !alike::instructions(a, b) {
        return false;
    }
    let (mine, others) = (a.operands(), b.operands());
    let mut differing = mine.into_iter().zip(others).enumerate().filter(|(_, (x, y))| x != y);
    match a.opcode() {
        Opcode::LLVMCall => {
            let callee = a.callee().filter(|callee| callee.is_intrinsic());
            // A marker of a variable's life must name the variable, and what is assumed is assumed of it.
            let marks = callee.is_some_and(|callee| {
                ["llvm.lifetime", "llvm.invariant", "llvm.assume", "llvm.experimental"]
                    .iter()
                    .any(|name| callee.name().starts_with(name))
            });
            differing.all(|(i, (x, _))| !marks && x.type_of().is_first_class() && !a.must_stay_constant(i))
        }
        // A field of a structure is a constant, and cannot be chosen; what is no constant on either side is an index.
        Opcode::LLVMGetElementPtr => differing.all(|(i, (x, y))| i < 2 || !(x.is_constant() || y.is_constant())),
        _ => differing.all(|(_, (x, _))| x.type_of().is_first_class()),
    }
}

/// The operands of a pair beside each other, in the order of the first: those of a comparison the other way round are
/// exchanged, and those of a sum and its like where more of them are the same then.
pub(super) fn joined_operands<'m>(
    a: Instruction<'m>,
    b: Instruction<'m>,
    same: &dyn Fn(Value<'m>, Value<'m>) -> bool,
) -> Vec<(Value<'m>, Value<'m>)> {
    use Opcode::*;
    let (mine, mut others) = (a.operands(), b.operands());
    let commutes = matches!(a.opcode(), LLVMAdd | LLVMFAdd | LLVMMul | LLVMFMul | LLVMAnd | LLVMOr | LLVMXor);
    let compares = matches!(a.opcode(), LLVMICmp | LLVMFCmp);
    let turned = compares && a.compares_the_other_way_round(b);
    let as_it_is = !compares || a.does_the_same_as(b);
    let may_turn = commutes || turned;
    if may_turn {
        let alike = |i: usize, j: usize| usize::from(same(mine[i], others[j]));
        if !as_it_is || alike(0, 1) + alike(1, 0) > alike(0, 0) + alike(1, 1) {
            others.swap(0, 1);
        }
    }
    mine.into_iter().zip(others).collect()
}
