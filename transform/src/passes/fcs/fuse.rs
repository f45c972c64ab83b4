//! The surgery.

use super::pairs::Guard;
use super::sites::Site;
use crate::alike;
use crate::llvm::{Block, Instruction};

/// Makes one call of the two, whose paths part at `branch`; returns the block where both sides come together for it.
pub(super) fn fuse<'m>(sites: [Site<'m>; 2], branch: Block<'m>, guard: Guard) -> Block<'m> {
    let [one, other] = sites;
    let heads = (split(one), split(other));
    let fused = other.block.insert_before(&format!("fused.{}", one.callee.name()));
    heads.0.terminator().set_successor(0, fused);
    heads.1.terminator().set_successor(0, fused);
    let (condition, first_when) = match guard {
        // Asked for here: in a round of several pairs it may have become the result of another fused call.
        Guard::Condition(first_when) => {
            let condition = branch.terminator().condition();
            (condition.expect("a guard by the condition of a branch with two ways"), first_when)
        }
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
    back.take_location(branch.terminator());
    fused
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
    alike::keep_what_both_promise(call, other);
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
