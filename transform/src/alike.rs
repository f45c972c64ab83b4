//! Whether two instructions, or two calls, can be merged into one, and what that one may then promise; and how the
//! values of two paths that are merged are joined.

use crate::llvm::{Block, Instruction, Opcode, Value};
use crate::remark::Reason;

/// Attributes of calls by which they must stay apart.
const APART: [&str; 4] = ["returns_twice", "noduplicate", "convergent", "nomerge"];

/// Whether it is a call that must not depend on more branches than before, whichever lanes make it together: a barrier
/// of GPUs, an exchange between lanes, or a function that holds one.
pub(crate) fn is_convergent(i: Instruction<'_>) -> bool {
    i.call_has("convergent")
}

/// Whether two instructions can be one, given the right operands: they do the same to operands of the same types.
pub(crate) fn instructions<'m>(a: Instruction<'m>, b: Instruction<'m>) -> bool {
    if a.opcode() != b.opcode() {
        return false;
    }
    if a.opcode() != Opcode::LLVMCall {
        return a.does_the_same_as(b);
    }
    let plain = |i: Instruction<'m>| {
        let marked = APART.iter().any(|name| i.call_has(name));
        let assembly = i.callee().is_some_and(Value::is_inline_assembly);
        !i.must_be_tail() && !i.has_bundles() && !marked && !assembly
    };
    a.callee() == b.callee() && plain(a) && plain(b) && calls(a, b).is_ok()
}

/// Whether two calls pass the same kinds of values in the same way, and promise what one call can promise; why not. Who
/// is called, and whether the calls may be moved, is left to the caller.
pub(crate) fn calls<'m>(one: Instruction<'m>, other: Instruction<'m>) -> Result<(), Reason> {
    let (arguments, others) = (one.arguments(), other.arguments());
    if one.called_type() != other.called_type() || arguments.len() != others.len() {
        return Err(Reason::FunctionTypes);
    }
    if arguments.into_iter().zip(others).any(|(a, b)| a.type_of() != b.type_of()) {
        return Err(Reason::ArgumentTypes);
    }
    if one.calling_convention() != other.calling_convention() {
        return Err(Reason::CallingConventions);
    }
    one.call_differs_from(other).map_or(Ok(()), |name| Err(Reason::Attribute(name)))
}

/// Reduces the attributes, flags, alignment, metadata and the permission to be a tail call of an instruction that also
/// stands for another of its kind to what both have. The location is left to the caller.
pub(crate) fn keep_what_both_promise<'m>(kept: Instruction<'m>, other: Instruction<'m>) {
    if kept.opcode() == Opcode::LLVMCall {
        kept.intersect_attributes(other);
        if !other.may_be_tail() {
            kept.forbid_tail();
        }
    }
    if kept.is_plain_access() {
        kept.lower_alignment_to(other);
    }
    kept.intersect_flags(other);
    kept.combine_metadata(other);
}

/// Gives each phi of `join` one value from `from` instead of one from each of two arms that no longer lead there:
/// `choose` makes it of theirs.
pub(crate) fn join_phis<'m>(
    join: Block<'m>,
    arms: [Block<'m>; 2],
    from: Block<'m>,
    mut choose: impl FnMut([Value<'m>; 2]) -> Value<'m>,
) {
    for phi in join.phis() {
        let values = arms.map(|arm| phi.incoming_from(arm).expect("a phi names each predecessor"));
        let value = choose(values);
        let mut rest: Vec<_> = phi.incoming().into_iter().filter(|(_, block)| !arms.contains(block)).collect();
        rest.push((value, from));
        let new = join.add_phi_in_front(&rest, "");
        new.take_location(phi);
        phi.as_value().replace_all_uses_with(new.as_value());
        phi.erase();
    }
}
