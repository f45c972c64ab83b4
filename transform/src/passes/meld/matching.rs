//! Which two instructions can be merged into one.
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
//! The merged instruction keeps those flags (`nuw`, `nsw`, `exact`, `inbounds`, fast-math, …) that both had, and the
//! metadata (aliases, ranges, …) that hold for both.

use crate::alike;
use crate::joining::{Exchange, beside_each_other, can_be_chosen};
use crate::llvm::{Instruction, Opcode, Value};

/// Whether two instructions can be one, with choices between their operands.
pub(super) fn can_be_one<'m>(a: Instruction<'m>, b: Instruction<'m>) -> bool {
    if a.opcode() != b.opcode() {
        return false;
    }
    // A field of a structure is a constant, and cannot be chosen; what is no constant on either side is an index.
    let index = |i: usize, x: Value<'m>, y: Value<'m>| i < 2 || !(x.is_constant() || y.is_constant());
    a.compares_the_other_way_round(b) || (alike::instructions(a, b) && can_be_chosen(a, b, index))
}

/// The operands of a pair beside each other, in the order of the first: those of a comparison the other way round are
/// exchanged, and those of a sum and its like where more of them are the same then.
pub(super) fn joined_operands<'m>(
    a: Instruction<'m>,
    b: Instruction<'m>,
    same: &dyn Fn(Value<'m>, Value<'m>) -> bool,
) -> Vec<(Value<'m>, Value<'m>)> {
    let compares = matches!(a.opcode(), Opcode::LLVMICmp | Opcode::LLVMFCmp);
    let exchange = match (compares && a.compares_the_other_way_round(b), compares && a.does_the_same_as(b)) {
        (true, true) => Exchange::May,
        (true, false) => Exchange::Must,
        (false, _) => Exchange::No,
    };
    beside_each_other(a, b, exchange, same)
}
