//! What a region's parts cost on the machine as they are, and in a row: the gate.
//!
//! A warp is sent through the region. Each of its lanes takes ways that a hash chooses: the sides of a branch are as
//! likely as each other, a loop is left once in [`TRIPS`] turns, and at a branch at which lanes agree all lanes of a
//! turn take one side. The same lanes go through the row, by its guards. Both times lanes wait where compilers for
//! NVIDIA's GPUs let them, as in `hanoi:placement=structured` (docs/fidelity.md): at the [`StructuredJoins`] and
//! [`PartialJoins`] of the branch at which they parted. What the warp issues is counted.
//!
//! So a short circuit, a `break` or an early return gains nothing, because the machine joins lanes there by itself. A
//! row gains where that has no place to join: in loops with several entries, whose lanes otherwise go round apart.

use flowgraph::{Builder, Graph, Join, Loops, NodeId, PartialJoins, StructuredJoins};
use rustc_hash::FxHashMap;

use super::plan::{Plan, Step};
use super::{Parts, estimate, needless};
use crate::context::Context;
use crate::llvm::{Block, Instruction};

/// Lanes of a warp.
const LANES: usize = 32;

/// How often a loop is taken to run, as in [`crate::cost`].
const TRIPS: u32 = 10;

/// A lane that has run so many parts stays where it is: an endless loop, or a long one, of which more says no more.
const MOST_PARTS: usize = 256;

/// The fewest instructions that lanes who meet early must have before them, until all do: as in the machine's model.
const LEAST: i64 = 3;

/// Choosing whose turn is next: a move of each number.
const CHOICE: i64 = 2;

/// Moves at a guard: each value that a part behind it uses has a phi there, and code generation makes a move of one in
/// eight (`estimate.rs`). In 200 random programs of jumps 8 phis come to a guard.
const MOVES: i64 = 1;

/// A control flow with what is known of its nodes.
pub(super) struct Priced {
    graph: Graph,
    loops: Loops,
    /// By node: how many fetches it is, calls included.
    fetches: Vec<i64>,
    /// By node: whether lanes that leave it together go on together.
    agree: Vec<bool>,
    /// By node: whether no lane comes there.
    cold: Vec<bool>,
}

impl Priced {
    /// The function as it is, where no lane comes to `cold` blocks.
    pub(super) fn of<'m>(cold: &[Block<'m>], context: &mut Context<'m>) -> Priced {
        let graph = context.flow().graph().clone();
        Priced::with(graph, cold, context)
    }

    /// A graph whose first nodes are the blocks of the function. What comes behind them is a look at a case.
    fn with<'m>(graph: Graph, cold: &[Block<'m>], context: &mut Context<'m>) -> Priced {
        let (flow, guard) = (context.flow(), context.costs().guard());
        let mut fetches: Vec<i64> = flow.blocks().iter().map(|&block| fetches_of(block, context)).collect();
        let mut agree: Vec<bool> = flow.blocks().iter().map(|&block| context.lanes_stay_together_at(block)).collect();
        fetches.resize(graph.node_count(), guard);
        agree.resize(graph.node_count(), false);
        let mut is_cold: Vec<bool> = flow.blocks().iter().map(|block| cold.contains(block)).collect();
        is_cold.resize(graph.node_count(), false);
        Priced { loops: Loops::of(&graph), graph, fetches, agree, cold: is_cold }
    }

    /// The fetches of a warp that goes once through a region, given by the nodes of its parts, the one where control
    /// comes in first: as it is, and in a row.
    pub(super) fn predict(&self, region: &[Vec<NodeId>], context: &Context<'_>) -> [i64; 2] {
        let mut part_of: FxHashMap<NodeId, usize> = FxHashMap::default();
        for (part, nodes) in region.iter().enumerate() {
            part_of.extend(nodes.iter().map(|&node| (node, part)));
        }
        let end = region.len();
        let (mut inside, mut passage) = (Builder::new(end), Passage::default());
        for (part, nodes) in region.iter().enumerate() {
            let out = |node: &NodeId| {
                let to = self.graph.successors(*node).iter().filter(|to| !self.cold[to.index()]);
                to.map(|to| part_of.get(to).copied().unwrap_or(end))
            };
            let mut leads: Vec<usize> = nodes.iter().flat_map(out).filter(|&to| to != part).collect();
            leads.sort_unstable();
            leads.dedup();
            leads
                .iter()
                .filter(|&&to| to < end)
                .for_each(|&to| _ = inside.edge(NodeId(part as u32), NodeId(to as u32)));
            let leaves = |node: &&NodeId| out(node).any(|to| to != part);
            passage.leads.push(leads);
            passage
                .fetches
                .push(nodes.iter().map(|&node| self.turns(node, &part_of) * self.fetches[node.index()]).sum());
            passage.agree.push(nodes.iter().filter(leaves).all(|node| self.agree[node.index()]));
        }
        passage.predict(&inside.build(NodeId(0)), context.settings().number("level"), context.costs().guard())
    }

    /// How often a node runs each time that control comes to its part: for the loops that lie in that.
    fn turns(&self, node: NodeId, part_of: &FxHashMap<NodeId, usize>) -> i64 {
        let around = std::iter::successors(self.loops.innermost(node), |&id| self.loops.parent(id));
        let is_inner = |&id: &flowgraph::LoopId| {
            self.loops.members(id).iter().all(|member| part_of.get(member) == part_of.get(&node))
        };
        i64::from(TRIPS).pow(around.take_while(is_inner).take(3).count() as u32)
    }
}

/// The fetches of a block, with those of what it calls.
fn fetches_of<'m>(block: Block<'m>, context: &mut Context<'m>) -> i64 {
    let beside = |other: Instruction<'m>| other.block() == Some(block);
    let mut sum = 0;
    for i in block.instructions() {
        sum += context.costs().fetches(i, &beside);
        if let Some(callee) = i.callee().filter(|callee| !callee.is_intrinsic() && !callee.is_inline_assembly()) {
            sum += context.cost_of_call(callee).fetches;
        }
    }
    sum
}

/// Of the regions of a function the one that gains most in a row, on the graph alone, before anything changes: what a
/// warp takes as it is and in a row. Others are not looked at when one gains enough.
pub(super) fn best<'m>(cold: &[Block<'m>], context: &mut Context<'m>) -> Option<[i64; 2]> {
    let priced = Priced::with(estimate::lowered(&context.flow()), cold, context);
    let mut whole: Vec<Vec<NodeId>> = Vec::new();
    let mut best: Option<[i64; 2]> = None;
    loop {
        let parts = Parts::of_graph(&priced.graph, &whole);
        if parts.left.len() < 2 {
            return best;
        }
        let mut members: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for (node, part) in parts.of.iter().enumerate() {
            members.entry(*part).or_default().push(NodeId(node as u32));
        }
        for (region, _) in parts.regions_of_graph(&priced.graph) {
            let nodes: Vec<Vec<NodeId>> = region.iter().map(|part| members[part].clone()).collect();
            let [apart, row] = priced.predict(&nodes, context);
            if best.is_none_or(|best| best[0] - best[1] < apart - row) {
                best = Some([apart, row]);
            }
            if apart - row >= context.threshold() || region.len() < 2 {
                return best;
            }
            let others = nodes.concat().into_iter().filter(|&node| node != region[0]);
            whole.push(std::iter::once(region[0]).chain(others).collect());
        }
    }
}

/// The parts of a region, by number.
#[derive(Default)]
struct Passage {
    /// Which may be next, their number for what follows.
    leads: Vec<Vec<usize>>,
    fetches: Vec<i64>,
    agree: Vec<bool>,
}

impl Passage {
    /// The fetches of a warp that goes through the region once: as it is, and in a row.
    fn predict(&self, inside: &Graph, level: i64, guard: i64) -> [i64; 2] {
        let (ways, end) = (self.ways(inside), self.leads.len());
        let mut plan = Plan::of(inside, &self.leads);
        needless::take_away(&mut plan, inside, &self.leads, level);
        let mut builder = Builder::new(end + 1);
        for (from, to) in self.leads.iter().enumerate() {
            to.iter().for_each(|&to| _ = builder.edge(NodeId(from as u32), NodeId(to as u32)));
        }
        let apart = issued(&builder.build(NodeId(0)), end, &[&self.fetches[..], &[0]].concat(), &ways);
        let of_step = |step: &Step| match *step {
            Step::Guard { .. } | Step::Back { .. } => guard + MOVES,
            Step::Body { part, .. } if self.leads[part].len() > 1 => self.fetches[part] + CHOICE,
            Step::Body { part, .. } | Step::Endless { part } => self.fetches[part],
            Step::End => 0,
        };
        let of_steps: Vec<i64> = plan.steps.iter().map(of_step).collect();
        let ways: Vec<Vec<usize>> = ways.iter().map(|way| in_row(&plan, way)).collect();
        [apart, issued(&plan.graph().0, plan.steps.len() - 1, &of_steps, &ways)]
    }

    /// The parts that each lane runs, with what follows at the end.
    fn ways(&self, inside: &Graph) -> Vec<Vec<usize>> {
        let (loops, end) = (Loops::of(inside), self.leads.len());
        let way = |lane: usize| {
            let (mut way, mut visits) = (vec![0], vec![0_usize; end]);
            while let Some(&part) = way.last().filter(|&&part| part < end && way.len() < MOST_PARTS) {
                visits[part] += 1;
                let random = hash(if self.agree[part] { LANES } else { lane }, part, visits[part]);
                let around = loops.innermost(NodeId(part as u32));
                let stays = |to: &usize| around.is_some_and(|id| *to < end && loops.contains(id, NodeId(*to as u32)));
                let (inside, outside): (Vec<usize>, Vec<usize>) = self.leads[part].iter().partition(|to| stays(to));
                let leaves = inside.is_empty() || !outside.is_empty() && random.is_multiple_of(TRIPS);
                let sides = if leaves { outside } else { inside };
                let Some(&next) = sides.get((random / TRIPS) as usize % sides.len().max(1)) else { break };
                way.push(next);
            }
            way
        };
        (0..LANES).map(way).collect()
    }
}

/// A number that is as good as random.
fn hash(lane: usize, part: usize, visit: usize) -> u32 {
    let mut x = (lane as u32).wrapping_mul(0x9e37_79b9) ^ (part as u32).wrapping_mul(0x85eb_ca6b) ^ (visit as u32) << 7;
    for factor in [0x7feb_352d_u32, 0x846c_a68b] {
        x = (x ^ x >> 16).wrapping_mul(factor);
    }
    x ^ x >> 15
}

/// The steps of a row by which a lane goes that runs these parts.
fn in_row(plan: &Plan, way: &[usize]) -> Vec<usize> {
    let (mut steps, mut at, mut turn) = (Vec::new(), plan.start, 0);
    while turn < way.len() {
        steps.push(at);
        at = match plan.steps[at] {
            Step::Guard { part, yes, no } | Step::Back { head: part, yes, no } => {
                if way[turn] == part {
                    yes
                } else {
                    no
                }
            }
            Step::Body { next, .. } => {
                turn += 1;
                next
            }
            Step::Endless { .. } | Step::End => break,
        };
    }
    steps
}

/// What a warp fetches whose lanes go these ways, with a stack of those that wait: each entry has lanes, and the node
/// at which they wait until the entries above it are gone.
fn issued(graph: &Graph, end: usize, fetches: &[i64], ways: &[Vec<usize>]) -> i64 {
    let joins = StructuredJoins::of(graph, &[NodeId(end as u32)]);
    let partial = PartialJoins::of(graph, &joins);
    let loops = joins.loops();
    let worth = |meeting: &&NodeId| fetches[meeting.index()] >= LEAST || graph.successors(**meeting).len() > 1;
    // The innermost first.
    let places = |branch: NodeId| -> Vec<usize> {
        let mut places: Vec<Join> =
            partial.of_branch(branch).iter().filter(worth).map(|&node| Join::Node(node)).collect();
        places.extend(joins.join(branch));
        for id in std::iter::successors(loops.innermost(branch), |&id| loops.parent(id)) {
            places.extend(partial.of_loop(id).iter().filter(worth).map(|&node| Join::Node(node)));
            places.extend(joins.behind(id));
        }
        let node = |join: Join| match join {
            Join::Node(node) => node.index(),
            Join::TurnEnd(id) => loops.header(id).index(),
        };
        places.into_iter().map(node).collect()
    };
    let mut stands = vec![0; ways.len()];
    let mut stack: Vec<(Vec<usize>, Option<usize>)> = vec![((0..ways.len()).collect(), None)];
    let mut sum = 0;
    while let Some((lanes, _)) = stack.last() {
        let waits = |node: usize| stack.iter().any(|(_, at)| *at == Some(node));
        let mut running: Vec<(usize, usize)> =
            lanes.iter().filter_map(|&lane| Some((*ways[lane].get(stands[lane])?, lane))).collect();
        running.retain(|&(node, _)| !waits(node));
        running.sort_unstable();
        let Some(&(node, lane)) = running.first() else {
            stack.pop();
            continue;
        };
        if running.iter().all(|&(other, _)| other == node) {
            sum += fetches[node];
            running.iter().for_each(|&(_, lane)| stands[lane] += 1);
            continue;
        }
        let all: Vec<usize> = running.iter().map(|&(_, lane)| lane).collect();
        for place in places(NodeId(ways[lane][stands[lane] - 1] as u32)).into_iter().rev() {
            if stack.iter().all(|(_, at)| *at != Some(place)) {
                stack.push((all.clone(), Some(place)));
            }
        }
        stack.extend(
            running.chunk_by(|a, b| a.0 == b.0).map(|side| (side.iter().map(|&(_, lane)| lane).collect(), None)),
        );
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a warp takes as it is and in a row, by the parts that each part leads to, their number for what follows.
    fn predicted(leads: &[&[usize]], fetches: &[i64], agree: bool) -> [i64; 2] {
        let end = leads.len();
        let mut inside = Builder::new(end);
        for (from, to) in leads.iter().enumerate() {
            to.iter().filter(|&&to| to < end).for_each(|&to| _ = inside.edge(NodeId(from as u32), NodeId(to as u32)));
        }
        let leads = leads.iter().map(|to| to.to_vec()).collect();
        let passage = Passage { leads, fetches: fetches.to_vec(), agree: vec![agree; end] };
        passage.predict(&inside.build(NodeId(0)), 4, 2)
    }

    #[test]
    fn a_short_circuit_takes_the_guard_and_the_choices_more_since_its_lanes_meet_by_themselves() {
        // if (0 || 1) { 2 } 3
        let [apart, row] = predicted(&[&[1, 2], &[2, 3], &[3]], &[10, 10, 20], false);
        assert_eq!(apart, 40);
        assert_eq!(row, apart + 2 * CHOICE + 2 * (2 + MOVES));
    }

    #[test]
    fn a_loop_with_two_entries_gains_unless_lanes_agree() {
        // 0 leads to 1 and to 2, these to each other and out.
        let graph: [&[usize]; 3] = [&[1, 2], &[2, 3], &[1, 3]];
        let [apart, row] = predicted(&graph, &[10, 100, 100], false);
        assert!(5 * row < 4 * apart, "{apart}, then {row}");
        let [apart, row] = predicted(&graph, &[10, 100, 100], true);
        assert!(row >= apart, "{apart}, then {row}");
    }

    #[test]
    fn a_way_on_without_an_end_is_followed_for_a_while() {
        assert_eq!(predicted(&[&[1], &[1]], &[3, 5], false)[0], 3 + 5 * (MOST_PARTS as i64 - 1));
    }
}
