//! The places where collecting lanes might save fetches: those at which fetches are lost, and those before other such
//! places.

use std::collections::BTreeSet;

use flowgraph::{Dominators, LoopId, Loops, NodeId, reached};
use heuristics::{ControlFlow, PlaceId, Prediction, calls_of, calls_towards};
use rustc_hash::FxHashMap;
use trace_format::Pc;

use crate::metrics::ActiveLanes;
use crate::{Outcome, Prepared};

/// Why lanes reach a place at different times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Some iterations of the loop around the place do not reach it.
    IterationDelay,
    /// Every iteration of the loop around it reaches it, and that loop is inside of another.
    LoopMerge,
    /// Every iteration of an outermost loop reaches it.
    EachTurn,
    /// It is in no loop: lanes reach it on different paths, and branches make them meet only after it.
    Join,
    /// It is a function that another one calls in several places, directly or through others.
    CommonCall,
}

impl Pattern {
    /// Its name for people, and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Pattern::IterationDelay => "iteration delay",
            Pattern::LoopMerge => "loop merge",
            Pattern::EachTurn => "each iteration",
            Pattern::Join => "join",
            Pattern::CommonCall => "common call",
        }
    }
}

/// A place at which collecting lanes might save fetches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Its first pc.
    pub at: Pc,
    /// Why lanes reach it at different times.
    pub pattern: Pattern,
    /// The first pc of the function in which the lanes join that reach it through others; none if they call it
    /// directly, or if it is not a function.
    pub from: Option<Pc>,
    /// How many fewer fetches there would be if everything after it in its loop were fetched for full warps.
    pub at_most: f64,
}

impl Candidate {
    /// As it is tried, with all lanes waited for.
    #[must_use]
    pub fn prediction(&self) -> Prediction {
        match self.pattern {
            Pattern::CommonCall => {
                Prediction { from: self.from.into_iter().collect(), ..Prediction::of_calls(self.at) }
            }
            _ => Prediction::at(self.at),
        }
    }
}

/// What was fetched of a place, in all its instructions.
#[derive(Clone, Copy, Default, PartialEq)]
struct Fetched {
    fetches: u64,
    thread_instructions: u64,
}

/// The candidates of a program that was replayed with [`ActiveLanes`], those that could save most first; of several
/// places in a row that the same lanes run in the same fetches, the first.
#[must_use]
pub fn candidates(prepared: &Prepared, outcome: &Outcome) -> Vec<Candidate> {
    let flow = &prepared.program().control_flow;
    let (Some(graph), Some(active)) = (flow.graph(), outcome.found::<ActiveLanes>()) else { return Vec::new() };
    let (loops, dominators) = (Loops::of(graph), Dominators::of(graph));
    let by_pc: FxHashMap<Pc, Fetched> = active.all.iter().map(|(pc, lanes)| (*pc, Fetched::of(lanes))).collect();
    let mut pcs_of: FxHashMap<PlaceId, BTreeSet<Pc>> = FxHashMap::default();
    for (_, segment) in prepared.program().segments.iter() {
        pcs_of.entry(segment.place).or_default().extend(segment.instructions.iter().map(|i| i.pc));
    }
    let at = |place: PlaceId| by_pc.get(&flow.start(place)).copied().unwrap_or_default();
    let lost_in = |place: PlaceId| -> f64 {
        let fetched = pcs_of.get(&place).into_iter().flatten().filter_map(|pc| by_pc.get(pc));
        fetched.map(|f| f.fetches as f64 - f.thread_instructions as f64 / outcome.warp_size as f64).sum()
    };
    // The last node leads to the entries of all functions, and is not one of their places.
    let count = graph.node_count() - 1;
    let nodes = || graph.nodes().take(count);
    // By place: what is lost in it and after it, in its loop.
    let mut at_most = vec![0.0; count];
    for node in nodes() {
        let lost = lost_in(PlaceId(node.0));
        let before = std::iter::successors(Some(node), |before| dominators.idom(*before));
        for before in before.take_while(|before| before.index() < count) {
            if loops.innermost(before).is_none_or(|around| loops.contains(around, node)) {
                at_most[before.index()] += lost;
            }
        }
    }
    let lost: f64 = nodes().map(|node| lost_in(PlaceId(node.0))).sum();
    let mut all: Vec<Candidate> = Vec::new();
    for node in nodes().filter(|node| at(PlaceId(node.0)).fetches > 0) {
        let around = loops.innermost(node);
        let goes_on_from = |before: NodeId| {
            before.index() < count
                && graph.successors(before) == [node]
                && loops.innermost(before) == around
                && at(PlaceId(before.0)) == at(PlaceId(node.0))
        };
        if dominators.idom(node).is_some_and(goes_on_from) || at_most[node.index()] == 0.0 {
            continue;
        }
        // Where a function begins nobody can be waited for in its own frame.
        if graph.predecessors(node).iter().all(|before| before.index() >= count) {
            let (place, at_most) = (PlaceId(node.0), at_most[node.index()]);
            let of = |from| Candidate { at: flow.start(place), pattern: Pattern::CommonCall, from, at_most };
            let is_common = calls_of(place, flow).iter().any(|calls| calls.len() > 1);
            all.extend(is_common.then(|| of(None)));
            if at_most * 100.0 >= lost {
                all.extend(common_through_others(place, flow).into_iter().map(|from| of(Some(from))));
            }
            continue;
        }
        let pattern = around.map_or(Pattern::Join, |around| pattern(&loops, &dominators, node, around));
        let (at, at_most) = (flow.start(PlaceId(node.0)), at_most[node.index()]);
        all.push(Candidate { at, pattern, from: None, at_most });
    }
    all.sort_by(|a, b| b.at_most.total_cmp(&a.at_most).then(a.at.cmp(&b.at)));
    all
}

/// The first pcs of the functions that call different functions which all lead to this one: lanes on those paths have
/// no nearer function in common.
fn common_through_others(entry: PlaceId, flow: &ControlFlow) -> Vec<Pc> {
    let Some(graph) = flow.graph() else { return Vec::new() };
    let entries = || graph.successors(graph.entry()).iter().copied();
    let own = |call: PlaceId| {
        let is_called = |to: &NodeId| flow.callers(PlaceId(to.0)).any(|from| from == call);
        entries().filter(is_called).collect::<Vec<NodeId>>()
    };
    let mut all = Vec::new();
    for calls in calls_towards(entry, flow) {
        let first = own(calls[0]);
        if calls[1..].iter().any(|call| own(*call) != first) {
            let around = |node: NodeId| graph.successors(node).iter().chain(graph.predecessors(node)).copied();
            let function = reached(graph, [NodeId(calls[0].0)], around);
            all.extend(entries().find(|to| function[to.index()]).map(|to| flow.start(PlaceId(to.0))));
        }
    }
    all
}

fn pattern(loops: &Loops, dominators: &Dominators, node: NodeId, around: LoopId) -> Pattern {
    let comes_each_turn = loops.latches(around).iter().all(|latch| dominators.dominates(node, *latch));
    match (comes_each_turn, loops.parent(around)) {
        (false, _) => Pattern::IterationDelay,
        (true, Some(_)) => Pattern::LoopMerge,
        (true, None) => Pattern::EachTurn,
    }
}

impl Fetched {
    /// Of fetches by number of active lanes.
    fn of(lanes: &[u64]) -> Fetched {
        let threads = lanes.iter().zip(1..).map(|(fetches, active)| fetches * active).sum();
        Fetched { fetches: lanes.iter().sum(), thread_instructions: threads }
    }
}
