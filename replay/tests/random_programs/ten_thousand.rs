//! Thousands of small random programs under every model: the checker refuses none of their replays, none beats the
//! lower bound, each gives the same step by step and in runs, and the models that are one model in other clothes
//! need as many fetches.
//!
//! The theory. Two lanes share a fetch of `ipdom` when they stand in one stack entry. Who is in an entry with whom
//! depends on where lanes went since they parted, never on when the entry runs: lanes leave an entry at a branch or at
//! its reconvergence, and both are places in the lane's own path. `dual-path` and `multi-path` without merging have the
//! same entries as paths and joins, `barrier` and `hanoi` as splits and barriers, and run them in other orders. So the
//! five need as many fetches, with the same numbers of active lanes, wherever all of them end: the order
//! in which paths that can run do so changes nothing. That holds with calls and barriers too. Two things break it, and
//! neither is in these programs' comparisons: a lock, whose winner depends on the order, and a barrier inside a branch
//! that opens only when a model gives up a join.

use heuristics::{REGISTRY, Spec};
use rayon::prelude::*;
use replay::metrics::Checker;
use replay::{Outcome, ReplayOptions, replay};

use crate::programs::{Statement, has_locks, lanes_of, without_locks};
use crate::{DEADLOCK, PLACEMENTS, each_step, of_one_theory, part_of};

const PROGRAMS: u64 = 10_000;

/// Marsaglia, *Xorshift RNGs* (Journal of Statistical Software 8, 2003): the same numbers on every machine.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn of(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn program(&mut self, depth: u64) -> Vec<Statement> {
        let length = 1 + self.below(if depth == 0 { 3 } else { 2 });
        (0..length).map(|_| self.statement(depth)).collect()
    }

    fn statement(&mut self, depth: u64) -> Statement {
        let kinds = if depth < 3 { 9 } else { 4 };
        match self.below(kinds) {
            0 | 1 => Statement::Straight(1 + self.below(3) as u8),
            2 => Statement::Call { function: self.below(2) as u8 },
            3 if self.below(2) == 0 => Statement::Locked { lock: self.below(2) as u8, body: Vec::new() },
            3 => Statement::Meet,
            4..=6 => {
                let (seed, then) = (self.below(256) as u8, self.program(depth + 1));
                let otherwise = if self.below(3) == 0 { Vec::new() } else { self.program(depth + 1) };
                Statement::Branch { seed, then, otherwise }
            }
            _ => Statement::Loop {
                seed: self.below(256) as u8,
                most: 1 + self.below(3) as u8,
                body: self.program(depth + 1),
            },
        }
    }
}

/// What a broken rule needs to be looked at.
type Fault = String;

fn judge(outcome: &Outcome, locks: bool) -> Result<(), Fault> {
    let name = outcome.heuristic.split(':').next().unwrap_or_default();
    if !outcome.is_complete() {
        let may = DEADLOCK.contains(&name) && locks;
        return if may { Ok(()) } else { Err(outcome.status().to_owned()) };
    }
    let fetches = outcome.counts.fetches();
    if fetches < outcome.lower_bound || outcome.optimum.fetches().is_some_and(|best| fetches < best && !locks) {
        return Err(format!("{} makes {fetches} fetches, which no schedule can", outcome.heuristic));
    }
    if fetches > outcome.upper_bound || outcome.counts.thread_instructions() != outcome.upper_bound {
        return Err(format!("{} makes {fetches} fetches of {}", outcome.heuristic, outcome.upper_bound));
    }
    Ok(())
}

fn replay_one(seed: u64, specs: &[Spec]) -> Result<(), Fault> {
    // Neighbouring seeds begin far apart, and none begins at 0, where the generator would stay.
    let mut numbers = Numbers::of(seed);
    let program = numbers.program(0);
    let lanes = 1 + numbers.below(6);
    let options = ReplayOptions {
        measures: vec![Checker::measure(), each_step()],
        warp_size: Some(1 + numbers.below(lanes + 1) as usize),
        warps_per_block: Some(1 + numbers.below(3) as usize),
        ..ReplayOptions::default()
    };
    let run = |program: &[Statement], specs: &[Spec]| {
        replay(&lanes_of(program, lanes), specs, &options, None, &|_, _| {}).map_err(|e| e.to_string())
    };
    let locks = has_locks(&program);
    let checked = run(&program, specs)?;
    checked.iter().try_for_each(|outcome| judge(outcome, locks))?;
    // Nothing is measured: what runs on without a choice must give the same.
    let plain = ReplayOptions { measures: Vec::new(), ..options.clone() };
    let plain = replay(&lanes_of(&program, lanes), specs, &plain, None, &|_, _| {}).map_err(|e| e.to_string())?;
    if let Some((a, b)) = checked.iter().zip(&plain).find(|(a, b)| (&a.counts, &a.tally) != (&b.counts, &b.tally)) {
        return Err(format!(
            "{}: {:?} step by step, {:?} in runs",
            a.heuristic,
            (&a.counts, &a.tally),
            (&b.counts, &b.tally)
        ));
    }
    for placement in PLACEMENTS {
        let outcomes = run(&without_locks(&program), &of_one_theory(placement))?;
        if let Some(other) = outcomes.iter().find(|outcome| outcome.counts != outcomes[0].counts) {
            return Err(format!("{}: {:?}, not {:?}", other.heuristic, other.counts, outcomes[0].counts));
        }
    }
    Ok(())
}

/// Models whose lanes wait elsewhere than at post-dominators, or meet anywhere, or run short arms together.
pub(crate) const PLACED: &str = "ipdom:placement=structured,barrier:placement=structured,barrier:meet=anywhere,\
                      barrier:meet=anywhere,placement=structured,hanoi:placement=binary,dual-path:placement=structured,\
                      multi-path:placement=structured,\
                      multi-path:merge=yes,placement=structured,tbc:placement=structured,lwm:placement=structured,\
                      dws:placement=structured,dws:longest=0,placement=structured,distance:placement=structured,\
                      ipdom:placement=nak,barrier:placement=nak,hanoi:placement=nak,\
                      barrier:meet=anywhere,placement=nak,dws:placement=nak,multi-path:merge=yes,placement=nak,\
                      ipdom:predicate=2,ipdom:placement=structured,predicate=6,\
                      barrier:placement=structured,predicate=6,barrier:meet=anywhere,placement=structured,predicate=6,\
                      dual-path:predicate=6,multi-path:placement=structured,predicate=3,hanoi:predicate=6";

#[test]
fn no_model_breaks_a_rule_on_any_random_program() {
    let mut specs: Vec<Spec> = REGISTRY.iter().map(|e| Spec::parse(e.name).unwrap()).collect();
    specs.extend(Spec::parse_list("multi-path:merge=yes,dws:order=turns,dwf:policy=time").unwrap());
    specs.extend(Spec::parse_list(PLACED).unwrap());
    let faults: Vec<(u64, Fault)> = (0..part_of(PROGRAMS))
        .into_par_iter()
        .filter_map(|seed| replay_one(seed, &specs).err().map(|f| (seed, f)))
        .collect();
    assert!(faults.is_empty(), "{} of them: {:?}", faults.len(), &faults[..faults.len().min(5)]);
}

#[test]
fn models_with_sets_of_two_widths_run_more_than_64_lanes_as_step_by_step() {
    let specs =
        Spec::parse_list("long,long-irb,long-minpc,long-minsp-pc,long:n=2,long-irb:n=9,round-robin-eq").unwrap();
    for seed in 0..60 {
        let program = Numbers::of(seed).program(0);
        let run = |measures| {
            let options = ReplayOptions { measures, warp_size: Some(70), ..ReplayOptions::default() };
            let outcomes = replay(&lanes_of(&program, 70), &specs, &options, None, &|_, _| {}).unwrap();
            outcomes.into_iter().map(|outcome| (outcome.heuristic, outcome.counts)).collect::<Vec<_>>()
        };
        let plain = run(Vec::new());
        assert_eq!(plain, run(vec![each_step()]), "{seed}");
        assert_eq!(plain, run(vec![Checker::measure()]), "{seed}");
    }
}
