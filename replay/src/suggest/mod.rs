//! Where collecting lanes pays: the places of a program at which waiting for other lanes might save fetches, each tried
//! on the lanes themselves.
//!
//! Damani et al. (CGO 2020, section 5) guess two patterns from the static program: code that lanes reach in different
//! iterations of a loop (*iteration delay*), and an inner loop that they run a different number of times (*loop
//! merge*). A programmer sees a third: a function that is called on several paths (*common call*). Here nothing is
//! guessed: candidates are the places at which fetches were not full, or places that only lead to such
//! ([`candidates()`]). Each is replayed as a [`Prediction`], with each threshold, and the cost of that replay is
//! reported. Then places are tried together with the best one, and with the resulting set, as long as it pays.
//!
//! The quantity to minimise is [`cost`]: a GPU's time where it is known; else fetches or a GPU's instructions, those of
//! waiting, and what the requested measures add.
//! [`passes`] says for the same lanes what passes of the compiler would gain.

mod candidates;
mod passes;

use std::sync::atomic::{AtomicUsize, Ordering};

use heuristics::{Prediction, Spec};
use rayon::prelude::*;

use crate::metrics::{ActiveLanes, GpuTime, Stalls, Traffic};
use crate::{Outcome, Prepared, ReplayOptions, Result, Unit};

pub use candidates::{Candidate, Pattern, candidates};
pub use passes::{Basis, Estimate, Pass, at_branches, passes};

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// A model that obeys predictions.
    pub model: &'a Spec,
    /// At most so many candidates, those that could save most.
    pub most: usize,
    /// How many waiting lanes are to be enough, besides all.
    pub thresholds: &'a [usize],
    /// At most so many places at once.
    pub together: usize,
    /// Candidates that could save less than this share of the fetches are not tried. 0: all are.
    pub least: f64,
    /// Whose instructions are counted.
    pub unit: Unit,
}

/// The result of collecting lanes at a candidate.
#[derive(Clone, Debug)]
pub struct Trial {
    /// How it was done.
    pub prediction: Prediction,
    /// What it took.
    pub outcome: Outcome,
}

/// The transactions of 32 bytes of a replay that counted them: those of stacks interleaved word by word, as on a GPU.
#[must_use]
pub fn transactions(outcome: &Outcome) -> Option<u64> {
    outcome.found::<Traffic>().map(|traffic| traffic.total.heap.transactions[0] + traffic.total.interleaved[0])
}

/// Where a GPU's accesses were measured ([`GpuMemory`](crate::metrics::GpuMemory)), the picoseconds that a GPU takes
/// which is full of such lanes: [`GpuTime::filled`].
///
/// Else the cycles of a core that issues one instruction in each, in order: [`Outcome::issued`]; where stalls were
/// measured, the cycles that it waits for loads; where memory traffic was, a cycle for each transaction of 32 bytes, in
/// which nothing else is issued. No other warp hides any of it.
#[must_use]
pub fn cost(outcome: &Outcome, unit: Unit) -> u64 {
    if let Some(time) = GpuTime::of(outcome) {
        return (time.filled * 1000.0) as u64;
    }
    let stalls = outcome.found::<Stalls>().map_or(0, |found| found.stalls);
    outcome.issued(unit) + stalls + transactions(outcome).unwrap_or_default()
}

/// By which outcomes are ranked, the least first: those that issue more than before come last where a time ranks, which
/// is known only to a factor; then by cost.
fn rank(outcome: &Outcome, before: &Outcome, unit: Unit) -> (bool, u64) {
    let issues_more = outcome.issued(unit) > before.issued(unit) && GpuTime::of(outcome).is_some();
    (issues_more, cost(outcome, unit))
}

/// A candidate with its trials.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The candidate.
    pub candidate: Candidate,
    /// Those that ran to their end, the one that costs least first; of equals the one that waits for more lanes.
    pub trials: Vec<Trial>,
}

impl Tried {
    /// The fewest instructions that one of its trials issues; none when none ran to its end.
    #[must_use]
    pub fn issued(&self, unit: Unit) -> Option<u64> {
        self.trials.iter().map(|trial| trial.outcome.issued(unit)).min()
    }
}

/// Several places at once.
#[derive(Clone, Debug)]
pub struct Together {
    /// The candidates, with the trial of each that says how lanes are collected there.
    pub places: Vec<(Candidate, Prediction)>,
    /// What it took.
    pub outcome: Outcome,
}

/// What there is to suggest.
#[derive(Clone, Debug)]
pub struct Suggestions {
    /// The same without a prediction.
    pub before: Outcome,
    /// How many candidates there were.
    pub candidates: usize,
    /// Those that were tried, the one that costs least first; where a time ranks, those that issue more than before
    /// come last.
    pub tried: Vec<Tried>,
    /// Several places at once; none where that costs no less than the best one alone.
    pub together: Option<Together>,
    /// In what that was counted.
    pub unit: Unit,
}

impl Suggestions {
    /// Whether an outcome costs less than without a prediction.
    #[must_use]
    pub fn pays(&self, outcome: &Outcome) -> bool {
        rank(outcome, &self.before, self.unit) < rank(&self.before, &self.before, self.unit)
    }

    /// The place or places at which collecting lanes costs least; none where not to costs as little.
    #[must_use]
    pub fn best(&self) -> Vec<(Candidate, Prediction)> {
        if let Some(together) = &self.together {
            return together.places.clone();
        }
        let first = self.tried.first().and_then(|tried| Some((tried.candidate, tried.trials.first()?)));
        let pays = first.filter(|(_, trial)| self.pays(&trial.outcome));
        pays.map(|(candidate, trial)| (candidate, trial.prediction.clone())).into_iter().collect()
    }
}

/// Tries the candidates that could save most, each with all lanes waited for and with the thresholds; then several
/// together. `done` is called with the replays done and all replays that are foreseen.
///
/// The control-flow graph must have been asked for ([`Prepared::new`]). Predictions made before are not obeyed.
///
/// # Errors
/// As [`Prepared::replay`].
pub fn suggest(
    prepared: &Prepared,
    search: Search<'_>,
    options: &ReplayOptions,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Suggestions> {
    let models = std::slice::from_ref(search.model);
    let mut counting = options.clone();
    counting.measures.push(ActiveLanes::measure());
    let before = prepared.replay_predicting(&[], models, &counting)?.remove(0);
    let candidates = candidates(prepared, &before);
    let least = search.least * before.counts.fetches() as f64;
    let worth = candidates.partition_point(|candidate| candidate.at_most >= least);
    let chosen = &candidates[..search.most.min(worth)];
    let ways: Vec<Option<usize>> = std::iter::once(None).chain(search.thresholds.iter().copied().map(Some)).collect();
    let all: Vec<Prediction> = chosen
        .iter()
        .flat_map(|candidate| ways.iter().map(|way| Prediction { threshold: *way, ..candidate.prediction() }))
        .collect();
    let finished = AtomicUsize::new(0);
    let outcomes: Vec<Outcome> = all
        .par_iter()
        .map(|prediction| {
            let outcome = prepared.replay_predicting(std::slice::from_ref(prediction), models, options)?.remove(0);
            done(finished.fetch_add(1, Ordering::Relaxed) + 1, all.len());
            Ok(outcome)
        })
        .collect::<Result<_>>()?;
    let mut trials = all.into_iter().zip(outcomes).map(|(prediction, outcome)| Trial { prediction, outcome });
    let mut tried = Vec::with_capacity(chosen.len());
    for candidate in chosen {
        let mut trials: Vec<Trial> = trials.by_ref().take(ways.len()).collect();
        trials.retain(|trial| trial.outcome.is_complete());
        // Those that wait for more lanes come first, and stay there where they cost as much.
        trials.sort_by_key(|trial| std::cmp::Reverse(trial.prediction.threshold.unwrap_or(usize::MAX)));
        trials.sort_by_key(|trial| rank(&trial.outcome, &before, search.unit));
        tried.push(Tried { candidate: *candidate, trials });
    }
    let first = |tried: &Tried| tried.trials.first().map(|trial| rank(&trial.outcome, &before, search.unit));
    tried.sort_by_key(|tried| first(tried).unwrap_or((true, u64::MAX)));
    let together = together(prepared, search, options, &before, &tried)?;
    Ok(Suggestions { before, candidates: candidates.len(), tried, together, unit: search.unit })
}

/// The best place, then with it each other one as it is best by itself and second best, the one that costs least, and
/// so on, until no further one pays or there are enough.
///
/// Places that were tried alone and do not pay may pay beside others, so all of them are tried.
fn together(
    prepared: &Prepared,
    search: Search<'_>,
    options: &ReplayOptions,
    before: &Outcome,
    tried: &[Tried],
) -> Result<Option<Together>> {
    let first = tried.first().and_then(|tried| Some((tried.candidate, tried.trials.first()?)));
    let models = std::slice::from_ref(search.model);
    let rank = |outcome: &Outcome| rank(outcome, before, search.unit);
    let pays = |outcome: &Outcome| rank(outcome) < rank(before);
    let Some((candidate, trial)) = first.filter(|(_, trial)| pays(&trial.outcome)) else { return Ok(None) };
    let mut best = Together { places: vec![(candidate, trial.prediction.clone())], outcome: trial.outcome.clone() };
    while best.places.len() < search.together {
        let others = tried.iter().filter(|t| !best.places.iter().any(|(candidate, _)| *candidate == t.candidate));
        let ways = others.flat_map(|t| t.trials.iter().take(2).map(|trial| (t.candidate, trial.prediction.clone())));
        let ways: Vec<(Candidate, Prediction)> = ways.collect();
        let outcomes: Vec<Outcome> = ways
            .par_iter()
            .map(|(_, prediction)| {
                let known = best.places.iter().map(|(_, prediction)| prediction);
                let predictions: Vec<Prediction> = known.chain([prediction]).cloned().collect();
                Ok(prepared.replay_predicting(&predictions, models, options)?.remove(0))
            })
            .collect::<Result<_>>()?;
        let mut next: Option<Together> = None;
        for (way, outcome) in ways.into_iter().zip(outcomes) {
            let least = next.as_ref().map_or(rank(&best.outcome), |next| rank(&next.outcome));
            if outcome.is_complete() && rank(&outcome) < least {
                let places = best.places.iter().cloned().chain([way]).collect();
                next = Some(Together { places, outcome });
            }
        }
        match next {
            Some(next) => best = next,
            None => break,
        }
    }
    Ok((best.places.len() > 1).then_some(best))
}
