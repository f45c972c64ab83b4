//! The surgery.

use super::pairs::{Guard, Pair, Round};
use super::sites::Site;
use crate::llvm::{Block, Instruction};

/// Makes one call of the two.
pub(super) fn fuse(pair: &Pair<'_>, round: &Round<'_>) {
    let guard = round.guard(pair);
    let (one, other) = (pair.one, pair.other);
    let heads = (split(one), split(other));
    let fused = other.block.insert_before(&format!("fused.{}", one.callee.name()));
    heads.0.terminator().set_successor(0, fused);
    heads.1.terminator().set_successor(0, fused);
    let (condition, first_when) = match guard {
        Guard::Condition(value, first_when) => (value, first_when),
        Guard::Phi => {
            let function = fused.function();
            let incoming = [(function.truth(true), heads.0), (function.truth(false), heads.1)];
            (fused.add_phi(&incoming, "from.first").as_value(), true)
        }
    };
    let call = joined_call(one.call, other.call, heads, fused);
    replace(one.call, call);
    replace(other.call, call);
    let (yes, no) = if first_when { (one.block, other.block) } else { (other.block, one.block) };
    let back = fused.branch_on(condition, yes, no);
    back.take_location(pair.branch_block().terminator());
}

/// Moves what comes before the call into a block of its own; the call is the first of what stays.
fn split<'m>(site: Site<'m>) -> Block<'m> {
    let head = site.block.split_before(site.call, "before.call");
    head.terminator().take_location(site.call);
    head
}

/// The call that stands for both: phis for the arguments that differ, and of attributes, flags and metadata what both
/// have.
fn joined_call<'m>(
    one: Instruction<'m>,
    other: Instruction<'m>,
    heads: (Block<'m>, Block<'m>),
    fused: Block<'m>,
) -> Instruction<'m> {
    let arguments = one.arguments().into_iter().zip(other.arguments());
    let joined: Vec<_> = arguments
        .map(|(a, b)| if a == b { a } else { fused.add_phi(&[(a, heads.0), (b, heads.1)], "").as_value() })
        .collect();
    let call = one.copy_to_end_of(fused);
    for (i, value) in joined.into_iter().enumerate() {
        call.set_operand(i as u32, value);
    }
    call.intersect_attributes(other);
    call.intersect_metadata(other);
    call.intersect_flags(other);
    if !other.may_be_tail() {
        call.forbid_tail();
    }
    call.join_locations(one, other);
    call.forbid_duplication();
    call
}

fn replace<'m>(old: Instruction<'m>, new: Instruction<'m>) {
    if !old.type_of().is_void() {
        old.as_value().replace_all_uses_with(new.as_value());
    }
    old.erase();
}
