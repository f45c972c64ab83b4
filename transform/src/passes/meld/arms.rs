//! Arms without one exit: those that end the function by themselves, or leave early to a block that other code leads to
//! as well. What their first blocks do before that can still be melded, once it stands in a block of its own.
//!
//! ```text
//! then:                        then:             else:
//!   x = load a                   x = load a        y = load b
//!   store x, p                   store x, p        store y, q
//!   t = x > 0                    goto then.rest    goto else.rest
//!   branch t, shared, rest     then.rest:        else.rest:
//! else:                          t = x > 0         return y
//!   y = load b                   branch t, …
//!   store y, q
//!   return y
//! ```

use rustc_hash::FxHashSet;

use super::gather::straighten;
use super::pairs::body;
use super::region::{Analyses, can_be_moved, subgraph_at};
use crate::context::Context;
use crate::cost;
use crate::llvm::{Block, Instruction};

/// Gives what the first blocks of such arms do blocks of their own, where the other arm begins with instructions of the
/// same kinds; which blocks these are.
pub(super) fn split<'m>(context: &mut Context<'m>) -> Vec<Block<'m>> {
    let mut arms = Vec::new();
    let (flow, dominators, post) = (context.flow(), context.dominators(), context.post_dominators());
    let analyses = Analyses { flow: &flow, dominators: &dominators, post: &post };
    for node in flow.graph().nodes().filter(|&node| dominators.depth(node).is_some()) {
        let head = flow.block(node);
        let terminator = head.terminator();
        let Ok(both) = <[Block<'m>; 2]>::try_from(terminator.successors()) else { continue };
        let is_arm = |arm: &Block<'m>| {
            let joins = post.ipdom(node).is_some_and(|meets| flow.block(meets) == *arm);
            !joins && arm.entering() == [terminator] && !arm.has_address() && !arm.is_handler()
        };
        if terminator.condition().is_none()
            || both[0] == both[1]
            || !both.iter().all(is_arm)
            || !alike(both.map(movable))
        {
            continue;
        }
        arms.extend(both.into_iter().filter(|arm| subgraph_at(&analyses, flow.node(*arm)).is_err()));
    }
    arms.into_iter().map(take_apart).collect()
}

/// Undoes the split of arms that were not melded.
pub(super) fn join_again(fronts: Vec<Block<'_>>) {
    for front in fronts.into_iter().filter(|front| !front.is_empty()) {
        straighten(front);
    }
}

/// What a block does before its end, up to the first instruction that cannot be moved. A comparison that is made only
/// for the branch stays with it.
fn movable(block: Block<'_>) -> Vec<Instruction<'_>> {
    let body = body(block).into_iter();
    body.take_while(|&i| can_be_moved(i)).filter(|&i| !is_of_branch(i, block.terminator())).collect()
}

/// Whether an instruction compares for a branch, and for nothing else.
fn is_of_branch<'m>(i: Instruction<'m>, branch: Instruction<'m>) -> bool {
    let value = i.as_value();
    branch.condition() == Some(value) && cost::is_comparison(value) && value.uses().len() == 1
}

/// Whether two rows have instructions of one kind.
fn alike(rows: [Vec<Instruction<'_>>; 2]) -> bool {
    let kinds: FxHashSet<u32> = rows[0].iter().map(|i| i.opcode() as u32).collect();
    rows[1].iter().any(|i| kinds.contains(&(i.opcode() as u32)))
}

/// The new block in front of the rest of an arm's first, with what can be moved there.
fn take_apart(arm: Block<'_>) -> Block<'_> {
    let end = arm.terminator();
    let body = body(arm);
    let rest = body.iter().copied().find(|&i| !can_be_moved(i)).unwrap_or(end);
    if let Some(&compares) = body.iter().take_while(|&&i| i != rest).find(|&&i| is_of_branch(i, end)) {
        compares.move_before(rest);
        return arm.split_before(compares, "front");
    }
    arm.split_before(rest, "front")
}
