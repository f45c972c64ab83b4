//! What passes of the compiler would gain, as far as lanes that ran the program without them can say it.
//!
//! | pass | how it is known |
//! |---|---|
//! | `fcs` | [`Basis::Replayed`]: lanes that part at a branch run the function that both sides call together, which is what one call for both sides makes them do. What the pass adds (choosing arguments, a second branch) is not in it |
//! | `meld` | [`Basis::AtMost`]: of each branch, how often lanes parted at it, times what both sides have in common: of instructions of one kind as many as the side with fewer of them fetched. No order of instructions lets more be shared; what has to be chosen between the sides' operands is not in it |
//! | `linearize` | [`Basis::Replayed`]: `tf-stack` runs the same lanes with the meetings that structured control flow has (Anantpur and Govindarajan, CC 2014). The guards that the pass adds are not in it |
//!
//! Worked number (`meld`): a branch is fetched 10 times, its sides 8 and 6 times each: lanes parted 4 times. One side
//! multiplies twice and adds once, the other multiplies once and stores: each time 1 multiplication is shared, so 4
//! fetches.
//!
//! *Limitation*: all three say what could be gained, not what a pass does: it may refuse, and optimisers move code.

use std::collections::BTreeMap;

use flowgraph::{Dominators, Graph, NodeId, reached};
use heuristics::{PlaceId, Prediction, Spec, calls_of};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use trace_format::Pc;

use super::Search;
use crate::metrics::ActiveLanes;
use crate::{Outcome, Prepared, ReplayOptions, Result};

/// A pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pass {
    /// One call for those on both sides of a branch.
    Fcs,
    /// One side for what both sides of a branch have in common.
    Meld,
    /// Control flow made structured.
    Linearize,
}

impl Pass {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Pass::Fcs => "fcs",
            Pass::Meld => "meld",
            Pass::Linearize => "linearize",
        }
    }
}

/// How what a pass would gain is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The lanes were replayed as they would run together.
    Replayed,
    /// Counted, and it cannot be more.
    AtMost,
    /// Estimated: it can be more or less.
    About,
}

impl Basis {
    /// Its name for people, and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Basis::Replayed => "replayed",
            Basis::AtMost => "at most",
            Basis::About => "about",
        }
    }
}

/// What a pass would gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Which.
    pub pass: Pass,
    /// The first pc of the place whose branch it is about; none where it is about all of the program.
    pub at: Option<Pc>,
    /// The function that is called on both sides.
    pub callee: Option<Pc>,
    /// Fetches that it would leave.
    pub fetches: u64,
    /// How that is known.
    pub basis: Basis,
}

/// What passes would gain of lanes that were replayed with [`ActiveLanes`], the fewest fetches first; those alone that
/// gain something. Of branches with a call on both sides as many are replayed as the search may try candidates.
///
/// # Errors
/// As [`Prepared::replay`].
pub fn passes(
    prepared: &Prepared,
    search: Search<'_>,
    options: &ReplayOptions,
    before: &Outcome,
) -> Result<Vec<Estimate>> {
    let options = ReplayOptions { measures: Vec::new(), ..options.clone() };
    let mut all = melds(prepared, before);
    let model = std::slice::from_ref(search.model);
    let calls: Vec<(Pc, Pc)> = calls_on_both_sides(prepared, before).into_iter().take(search.most).collect();
    let outcomes: Vec<Outcome> = calls
        .par_iter()
        .map(|(branch, callee)| {
            let prediction = Prediction { from: vec![*branch], ..Prediction::of_calls(*callee) };
            Ok(prepared.replay_predicting(&[prediction], model, &options)?.remove(0))
        })
        .collect::<Result<_>>()?;
    for ((branch, callee), outcome) in calls.into_iter().zip(outcomes) {
        if outcome.is_complete() {
            let (at, callee, fetches) = (Some(branch), Some(callee), outcome.counts.fetches());
            all.push(Estimate { pass: Pass::Fcs, at, callee, fetches, basis: Basis::Replayed });
        }
    }
    let structured = [Spec::parse("tf-stack").expect("a model's name")];
    let outcome = prepared.replay(&structured, &options, None, &|_, _| {})?.remove(0);
    if outcome.is_complete() {
        let fetches = outcome.counts.fetches();
        all.push(Estimate { pass: Pass::Linearize, at: None, callee: None, fetches, basis: Basis::Replayed });
    }
    all.retain(|estimate| estimate.fetches < before.counts.fetches());
    all.sort_by_key(|estimate| (estimate.fetches, estimate.pass, estimate.at, estimate.callee));
    Ok(all)
}

/// Fetches by instruction.
fn fetched(outcome: &Outcome) -> FxHashMap<Pc, u64> {
    let active = outcome.found::<ActiveLanes>();
    active.map(|active| active.all.iter().map(|(pc, lanes)| (*pc, lanes.iter().sum())).collect()).unwrap_or_default()
}

/// The branches whose sides both call a function, the first pcs of both; those first of whose function most fetches
/// are.
fn calls_on_both_sides(prepared: &Prepared, before: &Outcome) -> Vec<(Pc, Pc)> {
    let flow = &prepared.program().control_flow;
    let Some(graph) = flow.graph() else { return Vec::new() };
    let (dominators, fetched) = (Dominators::of(graph), fetched(before));
    let mut all: Vec<(u64, Pc, Pc)> = Vec::new();
    let entries = graph.successors(graph.entry()).iter().map(|entry| PlaceId(entry.0));
    for entry in entries {
        let callee = flow.start(entry);
        for calls in calls_of(entry, flow) {
            for (i, one) in calls.iter().enumerate() {
                for other in &calls[i + 1..] {
                    let Some(branch) = parts_before(graph, &dominators, NodeId(one.0), NodeId(other.0)) else {
                        continue;
                    };
                    let found = (fetched.get(&callee).copied().unwrap_or(0), flow.start(PlaceId(branch.0)), callee);
                    if !all.contains(&found) {
                        all.push(found);
                    }
                }
            }
        }
    }
    all.sort_by_key(|(fetches, branch, callee)| (std::cmp::Reverse(*fetches), *branch, *callee));
    all.into_iter().map(|(_, branch, callee)| (branch, callee)).collect()
}

/// The branch on two sides of which these are: it dominates both, and neither is reached from the other without it.
fn parts_before(graph: &Graph, dominators: &Dominators, one: NodeId, other: NodeId) -> Option<NodeId> {
    let of_one = std::iter::successors(Some(one), |node| dominators.idom(*node));
    let branch = of_one.take_while(|node| *node != graph.entry()).find(|node| dominators.dominates(*node, other))?;
    let next = |node: NodeId| if node == branch { &[][..] } else { graph.successors(node) }.iter().copied();
    let is_reached = |from: NodeId, to: NodeId| reached(graph, [from], next)[to.index()];
    let is_before = branch == one || branch == other || is_reached(one, other) || is_reached(other, one);
    (!is_before).then_some(branch)
}

/// What both sides of each branch have in common.
fn melds(prepared: &Prepared, before: &Outcome) -> Vec<Estimate> {
    let program = prepared.program();
    let flow = &program.control_flow;
    let Some(graph) = flow.graph() else { return Vec::new() };
    let (kinds, fetched) = (kinds(prepared), fetched(before));
    let times = |node: NodeId| fetched.get(&flow.start(PlaceId(node.0))).copied().unwrap_or(0);
    // Of a side, by kind of instruction: how often it is fetched, each time that lanes go there.
    let of_side = |side: &[NodeId], times: u64| -> BTreeMap<Code, f64> {
        let mut all = BTreeMap::new();
        for (pc, kind) in side.iter().flat_map(|node| kinds.get(&PlaceId(node.0)).into_iter().flatten()) {
            *all.entry(*kind).or_default() += fetched.get(pc).copied().unwrap_or(0) as f64 / times as f64;
        }
        all
    };
    let mut all = Vec::new();
    for branch in graph.nodes().filter(|node| *node != graph.entry()) {
        let Some(sides) =
            sides(graph, branch, flow.immediate_post_dominator(PlaceId(branch.0)).and_then(|pc| flow.place_at(pc)))
        else {
            continue;
        };
        let [one, other] = [0, 1].map(|side| times(sides[side][0]));
        let parted = (one + other).saturating_sub(times(branch));
        if parted == 0 || one == 0 || other == 0 {
            continue;
        }
        let [of_one, of_other] = [of_side(&sides[0], one), of_side(&sides[1], other)];
        let shared: f64 = of_one.iter().filter_map(|(kind, n)| Some(n.min(*of_other.get(kind)?))).sum();
        let saved = (parted as f64 * shared).floor() as u64;
        let fetches = before.counts.fetches().saturating_sub(saved);
        let at = Some(flow.start(PlaceId(branch.0)));
        all.push(Estimate { pass: Pass::Meld, at, callee: None, fetches, basis: Basis::AtMost });
    }
    all
}

/// The two sides of a branch, up to where they meet, each with the node first to which the branch leads; none where one
/// is empty, they have a node in common, or something else leads into one.
fn sides(graph: &Graph, branch: NodeId, meet: Option<PlaceId>) -> Option<[Vec<NodeId>; 2]> {
    let (&[one, other], meet) = (graph.successors(branch), meet.map(|place| NodeId(place.0))) else { return None };
    if one == other || [one, other].iter().any(|side| Some(*side) == meet || *side == branch) {
        return None;
    }
    let next = |node: NodeId| graph.successors(node).iter().copied().filter(|to| Some(*to) != meet);
    let sides = [one, other].map(|first| {
        let holds = reached(graph, [first], next);
        let others = graph.nodes().filter(|node| holds[node.index()] && *node != first);
        std::iter::once(first).chain(others).collect::<Vec<NodeId>>()
    });
    let is_apart = |side: &[NodeId]| {
        let leads = side.iter().flat_map(|node| graph.predecessors(*node));
        leads.into_iter().all(|from| *from == branch || side.contains(from))
    };
    (!sides[0].contains(&branch) && sides.iter().all(|side| is_apart(side))).then_some(sides)
}

/// The instructions of each place by kind, without jumps and branches.
fn kinds(prepared: &Prepared) -> FxHashMap<PlaceId, BTreeMap<Pc, Code>> {
    let segments = &prepared.program().segments;
    let mut all: FxHashMap<PlaceId, BTreeMap<Pc, Code>> = FxHashMap::default();
    for (id, segment) in segments.iter() {
        let of_place = all.entry(segment.place).or_default();
        let mut code = segments.code(id);
        for instruction in &segment.instructions {
            let (own, rest) = code.split_at(usize::from(instruction.len).min(code.len()));
            code = rest;
            let decoded = Decoder::new(64, own, DecoderOptions::NONE).decode();
            let is_jump =
                matches!(decoded.flow_control(), FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch);
            if !own.is_empty() && !is_jump {
                of_place.insert(instruction.pc, decoded.code());
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use flowgraph::Builder;

    use super::*;

    fn graph(nodes: u32, edges: &[(u32, u32)]) -> Graph {
        let mut builder = Builder::new(nodes as usize + 1);
        builder.edge(NodeId(nodes), NodeId(0));
        edges.iter().for_each(|(from, to)| _ = builder.edge(NodeId(*from), NodeId(*to)));
        builder.build(NodeId(nodes))
    }

    #[test]
    fn sides_end_where_lanes_meet_and_are_nobody_elses() {
        // 0 parts to 1 and 3; 1 has 2 behind it; 4 is where they meet.
        let apart = graph(5, &[(0, 1), (0, 3), (1, 2), (2, 4), (3, 4)]);
        let meet = Some(PlaceId(4));
        assert_eq!(sides(&apart, NodeId(0), meet), Some([[1, 2].map(NodeId).to_vec(), vec![NodeId(3)]]));
        assert_eq!(sides(&apart, NodeId(0), Some(PlaceId(3))), None, "an if without an else");
        let common = graph(5, &[(0, 1), (0, 3), (1, 2), (3, 2), (2, 4), (3, 4)]);
        assert_eq!(sides(&common, NodeId(0), meet), None);
    }

    #[test]
    fn calls_are_on_two_sides_where_none_leads_to_the_other() {
        // 0 parts to 1 and 2, which meet at 3; all in a loop.
        let in_turns = graph(5, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 0), (3, 4)]);
        let dominators = Dominators::of(&in_turns);
        let parts = |one: u32, other: u32| parts_before(&in_turns, &dominators, NodeId(one), NodeId(other));
        assert_eq!(parts(1, 2), Some(NodeId(0)));
        assert_eq!(parts(1, 3), None, "one after the other");
    }
}
