//! What passes of the compiler would gain, as far as a run of the program without them can tell.
//!
//! | pass | how it is known |
//! |---|---|
//! | `fcs` | [`Basis::Replayed`]: lanes that part at a branch run the function that both sides call together, which is what one call for both sides makes them do. What the pass adds (choosing arguments, a second branch) is not in it |
//! | `meld` | [`Basis::AtMost`], in a GPU's instructions [`Basis::About`]: of each branch, how often lanes parted at it, times what both sides have in common: of instructions of one kind as much as the side with less of them issued. No order of instructions lets more be shared; what has to be chosen between the sides' operands is not in it |
//! | `linearize` | [`Basis::AtMost`]: `tf-stack` runs the same lanes with the joins that structured control flow has (Anantpur and Govindarajan, CC 2014). The guards that the pass adds are not in it |
//!
//! Worked number (`meld`): a branch is fetched 10 times, its sides 8 and 6 times each: lanes parted 4 times. One side
//! multiplies twice and adds once, the other multiplies once and stores: each time 1 multiplication is shared, so 4
//! fetches.
//!
//! *Limitation*: all three say what could be gained, not what a pass does: it may refuse, and optimisers move code.

use std::collections::BTreeMap;

use flowgraph::{Dominators, Graph, NodeId, reached};
use heuristics::{PlaceId, Prediction, Spec, calls_of};
use machine::Instruction;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Kind, Pc};

use super::Search;
use crate::engine::gpu_tenths;
use crate::metrics::{ActiveLanes, Causes};
use crate::{Outcome, Prepared, ReplayOptions, Result, Unit};

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
    /// The instructions issued without it.
    pub before: u64,
    /// Those that it would leave.
    pub issued: u64,
    /// How that is known.
    pub basis: Basis,
}

/// The gains of passes for lanes that were replayed with [`ActiveLanes`], the fewest instructions first; only passes
/// that gain something. Branches with a call on both sides are replayed, at most as many as the search may try
/// candidates.
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
    let mut all = melds(prepared, before, search.unit, |_| true);
    let calls: Vec<(Pc, Pc)> = calls_on_both_sides(prepared, before).into_iter().take(search.most).collect();
    // `tf-stack` has no barriers, but the code that the pass makes has.
    let barriers = if search.unit == Unit::Gpu { gpu_tenths(before.tally.sync_fetches) / 10 } else { 0 };
    let before = before.issued(search.unit);
    all.extend(fused(prepared, search, &options, before, calls)?);
    let structured = [Spec::parse("tf-stack").expect("a model's name")];
    let outcome = prepared.replay(&structured, &options, None, &|_, _| {})?.remove(0);
    if outcome.is_complete() {
        let issued = outcome.issued(search.unit) + barriers;
        all.push(Estimate { pass: Pass::Linearize, at: None, callee: None, before, issued, basis: Basis::AtMost });
    }
    Ok(gaining(all))
}

/// What `fcs` and `meld` would gain at the branches where lanes, replayed with [`Causes`], lose at least this share of
/// their lost lane-slots. Nothing is replayed if no branch has a function that is called on both sides. `meld` gets
/// those fetches, `fcs` the search's model.
///
/// # Errors
/// As [`Prepared::replay`].
pub fn at_branches(
    prepared: &Prepared,
    search: Search<'_>,
    options: &ReplayOptions,
    (outcome, share): (&Outcome, f64),
) -> Result<Vec<Estimate>> {
    let options = ReplayOptions { measures: Vec::new(), ..options.clone() };
    let blamed = blamed(prepared, outcome, share);
    let is_blamed = |branch: Pc| blamed.contains(&branch);
    let mut all = melds(prepared, outcome, search.unit, is_blamed);
    let mut calls = calls_on_both_sides(prepared, outcome);
    calls.retain(|(branch, _)| is_blamed(*branch));
    calls.truncate(search.most);
    if !calls.is_empty() {
        let before = prepared.replay(std::slice::from_ref(search.model), &options, None, &|_, _| {})?.remove(0);
        if before.is_complete() {
            all.extend(fused(prepared, search, &options, before.issued(search.unit), calls)?);
        }
    }
    Ok(gaining(all))
}

/// The first pcs of the places after which lanes parted and lost at least this share of the lost lane-slots that way.
fn blamed(prepared: &Prepared, outcome: &Outcome, share: f64) -> FxHashSet<Pc> {
    let Some(causes) = outcome.found::<Causes>() else { return FxHashSet::default() };
    let flow = &prepared.program().control_flow;
    let lasts = prepared
        .program()
        .segments
        .iter()
        .filter_map(|(_, segment)| Some((segment.instructions.last()?.pc, flow.start(segment.place))));
    let place_of: FxHashMap<Pc, Pc> = lasts.collect();
    let mut lost: FxHashMap<Pc, u64> = FxHashMap::default();
    for (charge, slots) in &causes.charges {
        if let Some(place) = charge.parted_at.and_then(|pc| place_of.get(&pc)) {
            *lost.entry(*place).or_default() += slots;
        }
    }
    let least = share * causes.total() as f64;
    lost.into_iter().filter(|(_, slots)| *slots as f64 >= least).map(|(place, _)| place).collect()
}

/// Those that gain something, the fewest instructions first.
fn gaining(mut all: Vec<Estimate>) -> Vec<Estimate> {
    all.retain(|estimate| estimate.issued < estimate.before);
    all.sort_by_key(|estimate| (estimate.issued, estimate.pass, estimate.at, estimate.callee));
    all
}

/// The result of one call for both sides of each of these branches.
fn fused(
    prepared: &Prepared,
    search: Search<'_>,
    options: &ReplayOptions,
    before: u64,
    calls: Vec<(Pc, Pc)>,
) -> Result<Vec<Estimate>> {
    let estimate = |(branch, callee): (Pc, Pc)| {
        let prediction = Prediction { from: vec![branch], ..Prediction::of_calls(callee) };
        let outcome = prepared.replay_predicting(&[prediction], std::slice::from_ref(search.model), options)?.remove(0);
        // In the fused code lanes meet by barriers of branches, an instruction each: nobody is asked.
        let issued = outcome.fetched(search.unit) + outcome.tally.barrier_operations.unwrap_or_default();
        let (at, callee) = (Some(branch), Some(callee));
        let estimate = Estimate { pass: Pass::Fcs, at, callee, before, issued, basis: Basis::Replayed };
        Ok(outcome.is_complete().then_some(estimate))
    };
    calls.into_par_iter().map(estimate).filter_map(Result::transpose).collect()
}

/// Fetches by instruction.
fn fetched(outcome: &Outcome) -> FxHashMap<Pc, u64> {
    if let Some(active) = outcome.found::<ActiveLanes>() {
        return active.all.iter().map(|(pc, lanes)| (*pc, lanes.iter().sum())).collect();
    }
    let mut all = FxHashMap::default();
    for ((pc, _), issued) in outcome.found::<Causes>().into_iter().flat_map(|causes| &causes.issued) {
        *all.entry(*pc).or_default() += issued.fetches;
    }
    all
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

/// The branch that has these on two of its sides: it dominates both, and neither is reached from the other without it.
fn parts_before(graph: &Graph, dominators: &Dominators, one: NodeId, other: NodeId) -> Option<NodeId> {
    let of_one = std::iter::successors(Some(one), |node| dominators.idom(*node));
    let branch = of_one.take_while(|node| *node != graph.entry()).find(|node| dominators.dominates(*node, other))?;
    let next = |node: NodeId| if node == branch { &[][..] } else { graph.successors(node) }.iter().copied();
    let is_reached = |from: NodeId, to: NodeId| reached(graph, [from], next)[to.index()];
    let is_before = branch == one || branch == other || is_reached(one, other) || is_reached(other, one);
    (!is_before).then_some(branch)
}

/// What both sides of each branch have in common.
fn melds(prepared: &Prepared, before: &Outcome, unit: Unit, is_wanted: impl Fn(Pc) -> bool) -> Vec<Estimate> {
    let program = prepared.program();
    let flow = &program.control_flow;
    let Some(graph) = flow.graph() else { return Vec::new() };
    let (kinds, fetched) = (kinds(prepared, unit), fetched(before));
    let times = |node: NodeId| fetched.get(&flow.start(PlaceId(node.0))).copied().unwrap_or(0);
    // Of a side, by kind of instruction: what is issued of it, each time that lanes go there.
    let of_side = |side: &[NodeId], times: u64| -> BTreeMap<u16, f64> {
        let mut all = BTreeMap::new();
        for (pc, (kind, tenths)) in side.iter().flat_map(|node| kinds.get(&PlaceId(node.0)).into_iter().flatten()) {
            let fetches = fetched.get(pc).copied().unwrap_or(0) as f64;
            *all.entry(*kind).or_default() += f64::from(*tenths) / 10.0 * fetches / times as f64;
        }
        all
    };
    let mut all = Vec::new();
    let is_wanted = |node: &NodeId| *node != graph.entry() && is_wanted(flow.start(PlaceId(node.0)));
    for branch in graph.nodes().filter(is_wanted) {
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
        let before = before.issued(unit);
        let (at, issued) = (Some(flow.start(PlaceId(branch.0))), before.saturating_sub(saved));
        // What a GPU has for an instruction of the processor's is not so exact as to be a bound.
        let basis = if unit == Unit::Gpu { Basis::About } else { Basis::AtMost };
        all.push(Estimate { pass: Pass::Meld, at, callee: None, before, issued, basis });
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

/// The instructions of each place by kind, without jumps and branches, with what each counts, in tenths.
fn kinds(prepared: &Prepared, unit: Unit) -> FxHashMap<PlaceId, BTreeMap<Pc, (u16, u32)>> {
    let segments = &prepared.program().segments;
    let mut all: FxHashMap<PlaceId, BTreeMap<Pc, (u16, u32)>> = FxHashMap::default();
    for (id, segment) in segments.iter() {
        let known = segments.listing(id).iter().flatten();
        let others = known.filter(|instruction| !matches!(instruction.kind(), Kind::Jump | Kind::Branch));
        let of_place = all.entry(segment.place).or_default();
        let tenths = |instruction: Instruction| if unit == Unit::Gpu { instruction.gpu_tenths() } else { 10 };
        of_place.extend(others.map(|one| (one.pc(), (one.form(), tenths(one)))));
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
