//! Further uses of a row: applications of the paper's section 5, to control flow that is structured already.
//!
//! - `merge-loops=yes` (figure 8): an outer and an inner loop become one row with one back edge, so that a lane that is
//!   done with the inner loop begins the next iteration of the outer one, and joins the others in the inner loop. It
//!   pays if lanes need different numbers of inner iterations that level out over iterations of the outer loop: then
//!   the inner loop runs as often as the lane with the largest total needs, not as the sum of the maxima. It costs the
//!   guards of all parts in each iteration. Loops are merged where the trip counts of a trace ([`Trips`](crate::Trips))
//!   say that it gains `threshold` fetches; without a trace, at a threshold of 0 or less. What is unstructured in the
//!   function is linearized with them.
//! - `max-depth=N` (section 5.3): what lies under more than N branches is put in a row, so that lanes that part there
//!   come back to the same height of a reconvergence stack before they part again.
//! - `interleave=yes` (figure 7): the blocks of two arms alternate in the row, so that values that one arm loads are
//!   used as late as possible. A block that loads and uses a value is split between the two. Needless checks are
//!   removed as elsewhere, but lanes of both arms still meet wherever the row returns to an arm: removing all of them
//!   would put one arm after the other again.
//!
//! *Limitation*: only the innermost loop and the loop around it are merged, if that one has one exit block and holds no
//! other loop. Only arms without loops are interleaved.

use flowgraph::{Graph, LoopId, Loops, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::plan::{Plan, Step};
use super::surgery::{self, Part, Region};
use super::{graph_of, needless, prepare};
use crate::context::Context;
use crate::flow::Flow;
use crate::llvm::{Block, Instruction, Opcode};
use crate::remark::{Linearized, Reason};
use crate::trips::{Gain, Sought};

/// What is applied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Application {
    MergeLoops,
    MaxDepth(usize),
    Interleave,
}

/// Whether anything is to be applied to the function. Where loops could be merged and none pays, that is told.
pub(super) fn is_asked(context: &mut Context<'_>) -> bool {
    let asked = asked(context);
    if context.settings().number("merge-loops") == 1 && !asked.contains(&Application::MergeLoops) {
        let mut left = Vec::new();
        pays(context, &mut left);
        tell(left, context);
    }
    !asked.is_empty()
}

/// Says why code is left as it is.
fn tell<'m>(left: Vec<(Block<'m>, Reason)>, context: &mut Context<'m>) {
    for (at, reason) in left {
        let subject = if reason == Reason::HeldUp { "control flow" } else { "loops" };
        let places = at.instructions().into_iter().filter_map(Instruction::place);
        let place = places.filter(|place| place.line > 0).last();
        context.remark(subject.to_owned(), vec![place], reason, None);
    }
}

/// What is asked for and gains enough. What it gains is known of loops alone, by the trip counts of a trace; else it
/// counts as nothing.
fn asked(context: &mut Context<'_>) -> Vec<Application> {
    let settings = context.settings().clone();
    let unknown = context.threshold() <= 0;
    let mut asked = Vec::new();
    if settings.number("merge-loops") == 1 && (unknown && context.trips().is_none() || pays(context, &mut Vec::new())) {
        asked.push(Application::MergeLoops);
    }
    if settings.number("interleave") == 1 && unknown {
        asked.push(Application::Interleave);
    }
    let depth = settings.number("max-depth");
    if depth > 0 && unknown {
        asked.push(Application::MaxDepth(depth as usize));
    }
    asked
}

/// Whether a loop of the function is known to pay as one with the loop around it. Those that don't go to `left`.
fn pays<'m>(context: &mut Context<'m>, left: &mut Vec<(Block<'m>, Reason)>) -> bool {
    let (flow, loops) = (context.flow(), context.loops());
    let inner = loops.ids().filter_map(|id| alone_in(&loops, id));
    // All are looked at, so that each that is left has its reason.
    context.trips().is_some() && inner.filter(|&id| decided(id, &loops, &flow, context, left)).count() > 0
}

/// The loop in this one, if there is exactly one: figure 8 merges a pair of loops.
fn alone_in(loops: &Loops, around: LoopId) -> Option<LoopId> {
    let mut inside = loops.ids().filter(|&other| other != around && loops.contains(around, loops.header(other)));
    inside.next().filter(|_| inside.next().is_none())
}

/// Applies what is asked for to a function that is structured, but not where all lanes go the same way: at `agreeing`
/// blocks.
pub(super) fn run<'m>(
    agreeing: &[Block<'m>],
    done: &mut Linearized,
    choices: &mut Vec<Instruction<'m>>,
    context: &mut Context<'m>,
) {
    // An iteration of merged loops uses values from earlier iterations: an outer loop's part runs once for several of
    // them.
    let mut merged = false;
    for application in asked(context) {
        let mut seen: FxHashSet<Block<'m>> = FxHashSet::default();
        while let Some(region) = next(application, agreeing, &mut seen, context) {
            let (graph, leads) = (graph_of(&region), region.leads());
            if leads.iter().any(Vec::is_empty) {
                // An endless loop: what follows is not where all paths meet.
                continue;
            }
            let level = context.settings().number("level");
            let plan = match application {
                Application::MergeLoops => {
                    let mut plan = Plan::merged(&graph);
                    needless::take_away(&mut plan, &graph, &leads, level);
                    plan
                }
                Application::MaxDepth(_) => Plan::of(&graph, &leads),
                Application::Interleave => {
                    let arms = arms(&graph);
                    let mut plan = Plan::in_order(&order(&region, &graph, &arms), &arms);
                    needless::take_away(&mut plan, &graph, &leads, level);
                    plan
                }
            };
            let (guards, backs) = plan.guards();
            done.regions += 1;
            done.parts += region.parts.len();
            done.guards += guards;
            done.backs += backs;
            let merges = application == Application::MergeLoops;
            surgery::linearize(&region, &plan, level, merges || !merged, choices, context);
            merged |= merges;
        }
    }
}

/// The next region, none of whose blocks was in one before.
fn next<'m>(
    application: Application,
    agreeing: &[Block<'m>],
    seen: &mut FxHashSet<Block<'m>>,
    context: &mut Context<'m>,
) -> Option<Region<'m>> {
    if application == Application::MergeLoops {
        split_loops_of_one_block(context);
    }
    let (flow, loops, dominators) = (context.flow(), context.loops(), context.dominators());
    let (post, waits) = (context.post_dominators(), context.waits());
    let graph = flow.graph();
    let branches = |node: NodeId| graph.successors(node).len() > 1;
    let mut left = Vec::new();
    let found = loops.order().iter().copied().find_map(|head| {
        if seen.contains(&flow.block(head)) {
            return None;
        }
        let inner = loops.headed_by(head).and_then(|id| alone_in(&loops, id));
        let (members, behind) = if application == Application::MergeLoops {
            inner?;
            let members = loops.members(loops.headed_by(head)?).to_vec();
            let out = members.iter().flat_map(|&node| graph.successors(node)).find(|to| !members.contains(to))?;
            (members, *out)
        } else {
            let behind = post.ipdom(head).filter(|_| branches(head))?;
            let within = |&node: &NodeId| dominators.dominates(head, node) && !dominators.dominates(behind, node);
            (loops.order().iter().copied().filter(within).collect(), behind)
        };
        let is_in: FxHashSet<NodeId> = members.iter().copied().collect();
        if members.iter().any(|&node| seen.contains(&flow.block(node))) {
            return None;
        }
        let parts_lanes = |&node: &NodeId| branches(node) && !agreeing.contains(&flow.block(node));
        if !members.iter().any(parts_lanes) {
            return None;
        }
        let closed = members.iter().all(|&node| {
            let leaves = graph.successors(node).iter().all(|&to| is_in.contains(&to) || to == behind);
            let enters = graph.predecessors(node).iter().all(|&from| node == head || is_in.contains(&from));
            let stays = prepare::convergent(flow.block(node)).is_some();
            leaves && enters && !stays && !graph.successors(node).is_empty()
        });
        let inside = members.iter().filter(|&&node| node != head && branches(node)).count();
        let around = std::iter::successors(dominators.idom(head), |&above| dominators.idom(above))
            .filter(|&above| branches(above) && post.ipdom(above).is_none_or(|end| !dominators.dominates(end, head)));
        let arms = graph.successors(head);
        let fits = match application {
            Application::MergeLoops => true,
            Application::MaxDepth(most) => inside > 0 && around.count() >= most,
            Application::Interleave => {
                arms.len() == 2
                    && !arms.contains(&behind)
                    && members.iter().all(|&node| loops.innermost(node) == loops.innermost(head))
                    && loops.headed_by(head).is_none()
                    && members.iter().any(|&node| node != head && loads(flow.block(node)))
            }
        };
        if !closed || !fits {
            return None;
        }
        if waits.hold_up_anywhere(members.iter().map(|&node| flow.block(node))) {
            left.push((flow.block(head), Reason::HeldUp));
            return None;
        }
        let merged = inner.filter(|_| application == Application::MergeLoops);
        let pays = merged.is_none_or(|id| decided(id, &loops, &flow, context, &mut left));
        pays.then_some((members, head, behind, inner.map(|id| loops.header(id))))
    });
    // A head is looked at again in each round; its reason is told once.
    left.retain(|(at, _)| seen.insert(*at));
    tell(left, context);
    let (members, head, behind, inner) = found?;
    let mut blocks: Vec<Block<'m>> = members.iter().map(|&node| flow.block(node)).collect();
    seen.extend(blocks.iter().copied());
    let (head, behind) = (flow.block(head), flow.block(behind));
    if application == Application::Interleave {
        blocks = blocks.into_iter().flat_map(|block| if block == head { vec![block] } else { split(block) }).collect();
    }
    let mut parts: Vec<Part<'m>> = match inner {
        Some(inner) if application == Application::MergeLoops => folded(&members, [flow.node(head), inner], context),
        _ => blocks.into_iter().map(|block| Part { entry: block, blocks: vec![block] }).collect(),
    };
    let first = parts.iter().position(|part| part.entry == head)?;
    let head = parts.remove(first);
    parts.insert(0, head);
    Some(Region { parts, behind })
}

/// Whether an inner loop and the one around it become one: by the trip counts of a trace, where there is one. If not,
/// its first block and why not go to `left`.
fn decided<'m>(
    inner: LoopId,
    loops: &Loops,
    flow: &Flow<'m>,
    context: &Context<'m>,
    left: &mut Vec<(Block<'m>, Reason)>,
) -> bool {
    let Some(trips) = context.trips() else { return true };
    let depth = std::iter::successors(Some(inner), |of| loops.parent(*of)).count() as u32;
    let blocks = || loops.members(inner).iter().map(|&node| flow.block(node));
    let sought = Sought::of(blocks().flat_map(Block::instructions));
    let least = context.threshold();
    let reason = match sought.and_then(|of| trips.gain(&of, depth)) {
        Some(gain) if gain.least >= least => return true,
        Some(Gain { loops, least: lost, most }) if most >= least => {
            Reason::LoopsAlike { loops, costs: -lost, gain: most }
        }
        gain => Reason::LoopsApart { costs: gain.map(|gain| -gain.most) },
    };
    left.extend(blocks().next().map(|block| (block, reason)));
    false
}

/// Gives loops of one block that lie in others a second block, so that their way back leads from one part to another.
fn split_loops_of_one_block(context: &mut Context<'_>) {
    let (flow, loops) = (context.flow(), context.loops());
    for id in loops.ids().filter(|&id| loops.members(id).len() == 1 && loops.parent(id).is_some()) {
        let block = flow.block(loops.header(id));
        let _latch = block.split_before(block.terminator(), "latch");
    }
}

/// The parts of a loop nest: regions without the heads of the loops are one part each, other blocks stay alone.
fn folded<'m>(members: &[NodeId], heads: [NodeId; 2], context: &mut Context<'m>) -> Vec<Part<'m>> {
    let (flow, regions) = (context.flow(), context.regions());
    let is_in: FxHashSet<NodeId> = members.iter().copied().collect();
    let fits = |&id: &flowgraph::RegionId| {
        regions.members(id).iter().all(|node| is_in.contains(node) && !heads.contains(node))
    };
    let mut taken: FxHashSet<NodeId> = FxHashSet::default();
    let mut parts = Vec::new();
    for &node in members {
        let chain = std::iter::successors(regions.innermost(node), |&id| regions.parent(id));
        let Some(region) = chain.take_while(fits).last() else {
            parts.push(Part { entry: flow.block(node), blocks: vec![flow.block(node)] });
            continue;
        };
        if taken.insert(regions.entry(region)) {
            let blocks = regions.members(region).iter().map(|&node| flow.block(node)).collect();
            parts.push(Part { entry: flow.block(regions.entry(region)), blocks });
        }
    }
    parts
}

fn is_load(instruction: &Instruction<'_>) -> bool {
    instruction.opcode() == Opcode::LLVMLoad
}

fn loads(block: Block<'_>) -> bool {
    block.instructions().iter().any(is_load)
}

/// Splits a block before the first use of what it loads; the halves.
fn split(block: Block<'_>) -> Vec<Block<'_>> {
    let instructions = block.instructions();
    let loaded: FxHashSet<_> = instructions.iter().filter(|i| is_load(i)).map(|i| i.as_value()).collect();
    let uses = |i: &&Instruction<'_>| !i.is_phi() && i.operands().iter().any(|operand| loaded.contains(operand));
    match instructions.iter().find(uses) {
        Some(first) if !first.is_terminator() => vec![block, block.split_before(*first, "use")],
        _ => vec![block],
    }
}

/// The order of parts without loops in which loaded values are used as late as possible: among those that may come
/// next, the one whose youngest load lies furthest back; among equals one of the other arm than the last.
fn order(region: &Region<'_>, graph: &Graph, arms: &FxHashMap<NodeId, usize>) -> Vec<NodeId> {
    let blocks: Vec<Block<'_>> = region.parts.iter().map(|part| part.entry).collect();
    let mut placed = vec![NodeId(0)];
    let mut loaded: FxHashMap<Instruction<'_>, usize> = FxHashMap::default();
    let mut now = 0;
    while placed.len() < blocks.len() {
        let is_ready = |node: &NodeId| {
            !placed.contains(node) && graph.predecessors(*node).iter().all(|before| placed.contains(before))
        };
        let waits = |node: NodeId| {
            let operands = blocks[node.index()].instructions().into_iter().flat_map(Instruction::operands);
            let since = operands.filter_map(|value| value.as_instruction().and_then(|i| loaded.get(&i).copied()));
            since.max().map_or(usize::MAX, |since| now - since)
        };
        let last = placed.last().and_then(|node| arms.get(node));
        let ready = graph.nodes().filter(is_ready);
        // The first of those with the largest key.
        let next = ready.rev().max_by_key(|&node| (waits(node).min(1 << 20), arms.get(&node) != last));
        let next = next.expect("a graph without loops has a node that comes next");
        placed.push(next);
        for instruction in blocks[next.index()].instructions() {
            now += 1;
            if is_load(&instruction) {
                loaded.insert(instruction, now);
            }
        }
    }
    placed
}

/// Of which arm each part behind the branch is.
fn arms(graph: &Graph) -> FxHashMap<NodeId, usize> {
    let ways = graph.successors(NodeId(0)).iter().enumerate();
    ways.flat_map(|(arm, &start)| reached(graph, start).into_iter().map(move |node| (node, arm))).collect()
}

fn reached(graph: &Graph, start: NodeId) -> Vec<NodeId> {
    let mut found = vec![start];
    let mut at = 0;
    while at < found.len() {
        found.extend(graph.successors(found[at]).iter().filter(|to| !found.contains(to)).copied().collect::<Vec<_>>());
        at += 1;
    }
    found
}

impl Plan {
    /// The row in this order, for parts without loops. Lanes of both arms meet wherever it comes back to an arm that
    /// was left since they met last: what comes before runs for all before what follows.
    fn in_order(order: &[NodeId], arms: &FxHashMap<NodeId, usize>) -> Plan {
        let (mut steps, mut meets) = (Vec::new(), Vec::new());
        let mut left: FxHashSet<usize> = FxHashSet::default();
        let mut last = None;
        for node in order {
            let (part, arm) = (node.index(), arms.get(node).copied());
            if arm != last {
                left.extend(last);
            }
            if arm.is_some_and(|arm| arm != last.unwrap_or(arm) && left.contains(&arm)) {
                meets.push(steps.len());
                left.clear();
            }
            last = arm;
            if part != 0 {
                steps.push(Step::Guard { part, yes: steps.len() + 1, no: steps.len() + 2 });
            }
            steps.push(Step::Body { part, next: steps.len() + 1 });
        }
        steps.push(Step::End);
        Plan { steps, start: 0, comes_back: false, meets }
    }

    /// The row of all parts of a loop nest, with one way back for all loops: taken unless it is the turn of what
    /// follows.
    fn merged(graph: &Graph) -> Plan {
        let mut steps = Vec::new();
        for part in Loops::of(graph).order().iter().map(|node| node.index()) {
            steps.push(Step::Guard { part, yes: steps.len() + 1, no: steps.len() + 2 });
            steps.push(Step::Body { part, next: steps.len() + 1 });
        }
        steps.push(Step::Back { head: graph.node_count(), yes: steps.len() + 1, no: 0 });
        steps.push(Step::End);
        Plan { steps, start: 0, comes_back: true, meets: Vec::new() }
    }
}
