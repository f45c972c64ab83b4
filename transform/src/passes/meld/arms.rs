//! Arms without one exit: those that end the function by themselves, or leave early to a block that other code leads to
//! as well.
//!
//! Where both arms leave to the same two blocks, as where they share their last block or return early, they get one way
//! out until all is melded: a block that goes on to either. It is taken out again where nothing was chosen in it, and
//! else is left to the optimiser.
//!
//! ```text
//! then:                                then:                         out:
//!   t = x > 0                            t = x > 0                     w = phi true (from a, c), false (from b, d)
//!   branch t, shared, rest               branch t, a, b                branch w, shared, rest
//! else:                                else:
//!   u = y > 0                            u = y > 0                   (a, b, c and d only go on to out)
//!   branch u, shared, rest               branch u, c, d
//! ```
//!
//! Else what the first blocks do before that can still be melded, once it stands in a block of its own.
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

use flowgraph::NodeId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::gather::{gather, straighten};
use super::pairs::body;
use super::region::{Analyses, can_be_moved, can_be_taken_apart, subgraph_at};
use crate::context::Context;
use crate::cost;
use crate::llvm::{Block, Instruction, Opcode, Value};
use crate::waits::InFunction;

/// Arms of more blocks together are left.
const MOST_BLOCKS: usize = 48;

/// What was done to arms, to be undone.
#[derive(Default)]
pub(super) struct Split<'m> {
    /// First blocks of their own.
    fronts: Vec<Block<'m>>,
    /// Blocks through which two arms go on.
    outs: Vec<Block<'m>>,
}

impl Split<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.fronts.is_empty() && self.outs.is_empty()
    }

    /// Undoes the splits of arms that were not melded, and the ways out of all.
    pub(super) fn join_again(self) {
        for front in self.fronts.into_iter().filter(|front| !front.is_empty()) {
            straighten(front);
        }
        self.outs.into_iter().filter(|out| !out.is_empty()).for_each(dissolve);
    }
}

/// Gives such arms one way out, or what their first blocks do blocks of their own, where both begin with instructions
/// of the same kinds.
pub(super) fn split<'m>(context: &mut Context<'m>) -> Split<'m> {
    let (mut arms, mut ways) = (Vec::new(), Vec::new());
    let (flow, dominators, post) = (context.flow(), context.dominators(), context.post_dominators());
    let analyses = Analyses { flow: &flow, dominators: &dominators, post: &post };
    let waits = context.waits();
    let mut taken: FxHashSet<Block<'m>> = FxHashSet::default();
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
        let open: Vec<Block<'m>> =
            both.into_iter().filter(|arm| subgraph_at(&analyses, flow.node(*arm)).is_err()).collect();
        match ways_out(&analyses, &waits, node, both).filter(|ways| !open.is_empty() && ways.are_apart_from(&taken)) {
            Some(out) => {
                taken.extend(out.inside.iter().chain(&out.targets));
                ways.push(out);
            }
            None => arms.extend(open),
        }
    }
    arms.retain(|arm| !taken.contains(arm));
    Split { fronts: arms.into_iter().map(take_apart).collect(), outs: ways.into_iter().map(lead_out).collect() }
}

/// Where two arms leave to the same two blocks.
struct Ways<'m> {
    inside: FxHashSet<Block<'m>>,
    targets: [Block<'m>; 2],
}

impl<'m> Ways<'m> {
    fn are_apart_from(&self, taken: &FxHashSet<Block<'m>>) -> bool {
        self.inside.iter().chain(&self.targets).all(|block| !taken.contains(block))
    }
}

/// The two blocks to which both arms of a branch leave, where these are behind it, and nothing that lanes do together
/// comes before all meet again, and no wait of one lane for another.
fn ways_out<'m>(
    analyses: &Analyses<'_, 'm>,
    waits: &InFunction<'m>,
    head: NodeId,
    arms: [Block<'m>; 2],
) -> Option<Ways<'m>> {
    let Analyses { flow, dominators, post } = *analyses;
    let graph = flow.graph();
    let mut inside = FxHashSet::default();
    let mut left_to = |arm: Block<'m>| {
        let (arm, mut targets, mut open) = (flow.node(arm), Vec::new(), vec![flow.node(arm)]);
        while let Some(node) = open.pop().filter(|_| inside.len() <= MOST_BLOCKS && targets.len() <= 2) {
            if !dominators.dominates(arm, node) {
                targets.extend((!targets.contains(&node)).then_some(node));
            } else if inside.insert(flow.block(node)) {
                open.extend(graph.successors(node));
            }
        }
        targets.sort_unstable();
        <[NodeId; 2]>::try_from(targets).ok()
    };
    let [ours, theirs] = arms.map(&mut left_to);
    let targets = ours.filter(|_| ours == theirs && inside.len() <= MOST_BLOCKS)?;
    let begins_again = |node: &NodeId| dominators.dominates(*node, head);
    let (mut seen, mut open) = (FxHashSet::from_iter(post.ipdom(head)), targets.to_vec());
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            let together = |i: Instruction<'m>| i.opcode() == Opcode::LLVMCall && i.call_has("convergent");
            if flow.block(node).instructions().into_iter().any(together) {
                return None;
            }
            open.extend(graph.successors(node));
        }
    }
    post.ipdom(head).map(|meets| seen.remove(&meets));
    if waits.hold_up_anywhere(seen.into_iter().map(|node| flow.block(node)).chain(inside.iter().copied())) {
        return None;
    }
    let blocks = targets.map(|node| flow.block(node));
    let fixed = blocks.iter().any(|block| block.has_address() || block.is_handler());
    let movable = inside.iter().all(|&block| can_be_taken_apart(block));
    (!fixed && movable && !targets.iter().any(begins_again)).then_some(Ways { inside, targets: blocks })
}

/// Makes the block through which two arms go on.
fn lead_out<'m>(ways: Ways<'m>) -> Block<'m> {
    let Ways { inside, targets } = ways;
    let function = targets[0].function();
    let mut edges: [Vec<Block<'m>>; 2] = [Vec::new(), Vec::new()];
    for (side, target) in targets.into_iter().enumerate() {
        let from: Vec<Block<'m>> = target.entering().into_iter().filter_map(Instruction::block).collect();
        let from = from.into_iter().filter(|block| inside.contains(block));
        edges[side] = from.map(|one| gather(target, "way", |block| block == one, &mut FxHashMap::default())).collect();
    }
    let out = targets[0].insert_before("out");
    for (side, target) in targets.into_iter().enumerate() {
        for phi in target.phis() {
            let (own, mut rest): (Vec<_>, Vec<_>) =
                phi.incoming().into_iter().partition(|(_, from)| edges[side].contains(from));
            let nothing = edges[1 - side].iter().map(|&edge| (phi.type_of().poison(), edge));
            let joined = out.add_phi(&own.into_iter().chain(nothing).collect::<Vec<_>>(), "");
            rest.push((joined.as_value(), out));
            replace_phi(phi, &rest);
        }
    }
    let which = |side: usize| edges[side].iter().map(move |&edge| (function.truth(side == 0), edge));
    let which = out.add_phi(&which(0).chain(which(1)).collect::<Vec<_>>(), "");
    edges.iter().flatten().for_each(|edge| edge.terminator().set_successor(0, out));
    out.branch_on(which.as_value(), targets[0], targets[1]);
    out
}

/// Takes such a block out again, where it is known of each edge where it leads.
fn dissolve<'m>(out: Block<'m>) {
    let end = out.terminator();
    let (Some(which), Ok(targets)) =
        (end.condition().and_then(Value::as_instruction), <[Block<'m>; 2]>::try_from(end.successors()))
    else {
        return;
    };
    let phis = out.phis();
    let is_known =
        which.is_phi() && which.block() == Some(out) && which.incoming().iter().all(|(v, _)| v.as_number().is_some());
    let used_behind = |phi: &Instruction<'m>| {
        let uses = phi.as_value().uses();
        uses.iter()
            .all(|u| u.user == end || u.user.is_phi() && u.user.block().is_some_and(|block| targets.contains(&block)))
    };
    if !is_known || phis.len() + 1 != out.len() || !phis.iter().all(used_behind) || targets[0] == targets[1] {
        return;
    }
    let edges = [true, false].map(|truth| {
        let to = which.incoming().into_iter().filter(|(value, _)| (value.as_number() != Some(0)) == truth);
        to.map(|(_, from)| from).collect::<Vec<_>>()
    });
    if edges.iter().any(Vec::is_empty) {
        return;
    }
    for (own, target) in edges.iter().zip(targets) {
        for phi in target.phis() {
            let brought = phi.incoming_from(out).expect("a phi brings something from each block before");
            let through = brought.as_instruction().filter(|i| i.is_phi() && i.block() == Some(out));
            let of_edge = |&edge: &Block<'m>| {
                (through.map_or(brought, |phi| phi.incoming_from(edge).expect("a block before")), edge)
            };
            let rest = phi.incoming().into_iter().filter(|(_, from)| *from != out);
            replace_phi(phi, &rest.chain(own.iter().map(of_edge)).collect::<Vec<_>>());
        }
        for edge in own {
            let terminator = edge.terminator();
            for (number, successor) in terminator.successors().into_iter().enumerate() {
                if successor == out {
                    terminator.set_successor(number, target);
                }
            }
        }
    }
    end.erase();
    phis.into_iter().for_each(Instruction::erase);
    out.erase();
    edges.into_iter().flatten().for_each(pass_by);
}

/// Takes out a block that only goes on, where phis behind it can tell the block before it.
fn pass_by(block: Block<'_>) {
    let (entering, end) = (block.entering(), block.terminator());
    let ([before], [target]) = (&entering[..], &end.successors()[..]) else { return };
    let (Some(from), target) = (before.block(), *target) else { return };
    let known = target.entering().into_iter().any(|other| other.block() == Some(from));
    if block.len() > 1 || known || block.has_address() || block == block.function().entry() {
        return;
    }
    for phi in target.phis() {
        let moved = phi.incoming().into_iter().map(|(value, of)| (value, if of == block { from } else { of }));
        replace_phi(phi, &moved.collect::<Vec<_>>());
    }
    let number = before.successors().into_iter().position(|successor| successor == block);
    before.set_successor(number.expect("it leads there"), target);
    end.erase();
    block.erase();
}

/// Puts a phi that joins this in the place of another.
fn replace_phi<'m>(phi: Instruction<'m>, incoming: &[(Value<'m>, Block<'m>)]) {
    let new = phi.block().expect("a phi in a block").add_phi_in_front(incoming, &phi.as_value().name());
    new.take_location(phi);
    phi.as_value().replace_all_uses_with(new.as_value());
    phi.erase();
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
