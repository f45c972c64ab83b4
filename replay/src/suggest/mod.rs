//! Where collecting lanes pays: the places of a program at which waiting for other lanes might save fetches, each tried
//! on the lanes themselves.
//!
//! Damani et al. (CGO 2020, section 5) guess two patterns from the static program: code that lanes come to in different
//! turns of a loop (*iteration delay*), and an inner loop that they run a different number of times (*loop merge*); a
//! programmer sees a third, a function that is called on several ways (*common call*).
//! Here nothing is guessed: candidates are the places at which fetches were not full, or in places that only they lead
//! to. Each is replayed as a [`Prediction`], with each threshold, and what that took is what is reported.

use std::collections::BTreeSet;

use flowgraph::{Dominators, LoopId, Loops, NodeId};
use heuristics::{PlaceId, Prediction, Spec, calls_of};
use rustc_hash::FxHashMap;
use trace_format::Pc;

use crate::metrics::ActiveLanes;
use crate::{Outcome, Prepared, ReplayOptions, Result};

/// Why lanes come to a place at different times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Not every turn of the loop around the place comes to it.
    IterationDelay,
    /// Every turn of the loop around it comes to it, and that loop is inside of another.
    LoopMerge,
    /// Every turn comes to it of a loop that is inside of none.
    EachTurn,
    /// It is in no loop: lanes come to it by different ways, and branches make them meet behind it only.
    Join,
    /// It is a function that another one calls in several places.
    CommonCall,
}

impl Pattern {
    /// Its name for people, and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Pattern::IterationDelay => "iteration delay",
            Pattern::LoopMerge => "loop merge",
            Pattern::EachTurn => "each turn",
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
    /// Why lanes come to it at different times.
    pub pattern: Pattern,
    /// How many fetches fewer there would be, if all that is behind it in its loop were fetched for full warps.
    pub at_most: f64,
}

impl Candidate {
    /// As it is tried, with all lanes waited for.
    #[must_use]
    pub fn prediction(&self) -> Prediction {
        match self.pattern {
            Pattern::CommonCall => Prediction::of_calls(self.at),
            _ => Prediction::at(self.at),
        }
    }
}

/// What came of collecting lanes at a candidate.
#[derive(Clone, Debug)]
pub struct Trial {
    /// How it was done.
    pub prediction: Prediction,
    /// What it took.
    pub outcome: Outcome,
}

impl Trial {
    /// The instructions that it issues: fetches, and those of the prediction's barriers.
    #[must_use]
    pub fn issued(&self) -> u64 {
        issued(&self.outcome)
    }
}

/// Fetches, and the instructions of a prediction's barriers: what a GPU would issue.
#[must_use]
pub fn issued(outcome: &Outcome) -> u64 {
    outcome.counts.fetches() + outcome.tally.barrier_operations.unwrap_or_default()
}

/// A candidate with its trials.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The candidate.
    pub candidate: Candidate,
    /// Those that ran to their end, the one that issues least first; of equals the one that waits for more lanes.
    pub trials: Vec<Trial>,
}

impl Tried {
    /// The fewest instructions that one of its trials issues; none when none ran to its end.
    #[must_use]
    pub fn issued(&self) -> Option<u64> {
        self.trials.first().map(Trial::issued)
    }
}

/// What there is to suggest.
#[derive(Clone, Debug)]
pub struct Suggestions {
    /// The same without a prediction.
    pub before: Outcome,
    /// How many candidates there were.
    pub candidates: usize,
    /// Those that were tried, the one that issues least first.
    pub tried: Vec<Tried>,
}

/// Tries the candidates that could save most, at most so many, under a model that obeys predictions, each with all
/// lanes waited for and with these thresholds. `done` is called with the replays done and all replays.
///
/// The control-flow graph must have been asked for ([`Prepared::new`]). Predictions made before are replaced, and none
/// are left.
///
/// # Errors
/// As [`Prepared::replay`].
pub fn suggest(
    prepared: &mut Prepared,
    model: &Spec,
    options: &ReplayOptions,
    most: usize,
    thresholds: &[usize],
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Suggestions> {
    let models = std::slice::from_ref(model);
    prepared.predict(&[]);
    let mut counting = options.clone();
    counting.measures.push(ActiveLanes::measure());
    let before = prepared.replay(models, &counting, None, &|_, _| {})?.remove(0);
    let candidates = candidates(prepared, &before);
    let chosen = &candidates[..most.min(candidates.len())];
    let ways: Vec<Option<usize>> = std::iter::once(None).chain(thresholds.iter().copied().map(Some)).collect();
    let mut tried = Vec::with_capacity(chosen.len());
    for (number, candidate) in chosen.iter().enumerate() {
        let mut trials = Vec::with_capacity(ways.len());
        for (way, threshold) in ways.iter().enumerate() {
            done(number * ways.len() + way, chosen.len() * ways.len());
            let prediction = Prediction { threshold: *threshold, ..candidate.prediction() };
            prepared.predict(std::slice::from_ref(&prediction));
            let outcome = prepared.replay(models, options, None, &|_, _| {})?.remove(0);
            if outcome.is_complete() {
                trials.push(Trial { prediction, outcome });
            }
        }
        // Those that wait for more lanes come first, and stay there where they issue as much.
        trials.sort_by_key(|trial| std::cmp::Reverse(trial.prediction.threshold.unwrap_or(usize::MAX)));
        trials.sort_by_key(Trial::issued);
        tried.push(Tried { candidate: *candidate, trials });
    }
    prepared.predict(&[]);
    tried.sort_by_key(|tried| tried.issued().unwrap_or(u64::MAX));
    Ok(Suggestions { before, candidates: candidates.len(), tried })
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
    // The last node leads to the entries of all functions: it is none of their places.
    let count = graph.node_count() - 1;
    let nodes = || graph.nodes().take(count);
    // By place: what is lost in it and behind it, in its loop.
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
            let is_common = calls_of(PlaceId(node.0), flow).iter().any(|calls| calls.len() > 1);
            let at_most = at_most[node.index()];
            let common = Candidate { at: flow.start(PlaceId(node.0)), pattern: Pattern::CommonCall, at_most };
            all.extend(is_common.then_some(common));
            continue;
        }
        let pattern = around.map_or(Pattern::Join, |around| pattern(&loops, &dominators, node, around));
        all.push(Candidate { at: flow.start(PlaceId(node.0)), pattern, at_most: at_most[node.index()] });
    }
    all.sort_by(|a, b| b.at_most.total_cmp(&a.at_most).then(a.at.cmp(&b.at)));
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
