//! Random programs with locks inside of locks, whose lanes take turns: no model deadlocks, nothing is lost, and `minpc`
//! makes the fetches that a reference makes, which knows neither the engine nor its sections.

use heuristics::{REGISTRY, Spec};
use proptest::prelude::*;
use replay::in_memory::{Does, InMemory};
use replay::metrics::{Causes, Checker, ScheduleHashes};
use replay::{Control, LockId, Locks, ReplayOptions, replay};
use trace_format::Pc;

use crate::programs::{does, sections, statements};

/// Runs lanes by recursion: a section is a call that returns when all its lanes are behind it. Sound where no lane
/// holds what one in another section wants, as in programs whose locks belong to a depth.
struct Reference<'a> {
    lanes: &'a [Vec<Does>],
    at: Vec<usize>,
    held: Vec<Vec<LockId>>,
    /// Fetches by number of active lanes.
    active: Vec<u64>,
}

impl Reference<'_> {
    fn run(lanes: &[Vec<Does>]) -> Vec<u64> {
        let all: Vec<usize> = (0..lanes.len()).collect();
        let (at, held) = (vec![0; lanes.len()], vec![Vec::new(); lanes.len()]);
        let mut reference = Reference { lanes, at, held, active: vec![0; lanes.len()] };
        reference.scope(&all, None);
        reference.active
    }

    fn next(&self, lane: usize) -> Option<&Does> {
        self.lanes[lane].get(self.at[lane])
    }

    /// The pc that the lane runs next, whatever it reaches before.
    fn pc(&self, lane: usize) -> Pc {
        let runs = |d: &Does| if let Does::Runs(instruction, _) = d { Some(instruction.pc) } else { None };
        self.lanes[lane][self.at[lane]..].iter().find_map(runs).expect("a lane ends with an instruction")
    }

    /// Goes through what the lane gives back; whether it has come out of the scope by that.
    fn gives_back(&mut self, lane: usize, least: Option<usize>) -> bool {
        while let Some(Does::Comes(Control::Release(lock))) = self.next(lane).cloned() {
            self.held[lane].retain(|held| *held != lock);
            self.at[lane] += 1;
            if least.is_some_and(|least| self.held[lane].len() <= least) {
                return true;
            }
        }
        false
    }

    /// Runs lanes until each has ended or has no more locks than when it came: those it had, as many as `least` says by
    /// lane.
    fn scope(&mut self, lanes: &[usize], least: Option<&[usize]>) {
        let mut inside: Vec<usize> = lanes.to_vec();
        // Sections that lanes have reached, the one to be run next last.
        let mut sections: Vec<Vec<usize>> = Vec::new();
        loop {
            let least_of = |lane: usize| least.map(|least| least[lane]);
            inside.retain(|lane| !self.gives_back(*lane, least_of(*lane)) && self.next(*lane).is_some());
            let wants = |d: Option<&Does>| matches!(d, Some(Does::Comes(Control::Acquire(_))));
            let waits = |lane: &usize| sections.iter().any(|s: &Vec<usize>| s.contains(lane));
            let mut comes: Vec<usize> = inside.iter().copied().filter(|l| wants(self.next(*l)) && !waits(l)).collect();
            while let Some(first) = comes.first().copied() {
                let here = |lane: &usize| self.pc(*lane) == self.pc(first);
                let (together, others) = comes.iter().copied().partition(here);
                sections.push(together);
                comes = others;
            }
            if let Some(section) = sections.pop() {
                self.section(section);
                continue;
            }
            let Some(pc) = inside.iter().map(|l| self.pc(*l)).min() else { return };
            let running: Vec<usize> = inside.iter().copied().filter(|l| self.pc(*l) == pc).collect();
            self.active[running.len() - 1] += 1;
            running.into_iter().for_each(|lane| self.at[lane] += 1);
        }
    }

    fn section(&mut self, mut lanes: Vec<usize>) {
        let before: Vec<usize> = self.held.iter().map(Vec::len).collect();
        while !lanes.is_empty() {
            let mut turn: Vec<usize> = Vec::new();
            let mut taken: Vec<LockId> = Vec::new();
            for lane in &lanes {
                let Some(Does::Comes(Control::Acquire(lock))) = self.next(*lane) else { unreachable!("it came here") };
                if !taken.contains(lock) {
                    taken.push(*lock);
                    turn.push(*lane);
                }
            }
            for (lane, lock) in turn.iter().zip(taken) {
                self.held[*lane].push(lock);
                self.at[*lane] += 1;
            }
            self.scope(&turn, Some(&before));
            lanes.retain(|lane| !turn.contains(lane));
        }
    }
}

fn options() -> ReplayOptions {
    ReplayOptions { measures: vec![Checker::measure()], ..ReplayOptions::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_model_deadlocks_and_nothing_is_lost(program in sections(4), lanes in 1u64..9, size in 1usize..9, warps in 1usize..4) {
        let source = InMemory::new(&does(&program, lanes)).under(Locks::Simt);
        let mut specs: Vec<Spec> = REGISTRY.iter().map(|e| Spec::parse(e.name).unwrap()).collect();
        specs.extend(Spec::parse_list("barrier:yield=no,multi-path:merge=yes,dws:order=turns,dwf:policy=time").unwrap());
        let options = ReplayOptions { measures: vec![Causes::measure(), Checker::measure()], warp_size: Some(size), warps_per_block: Some(warps), ..options() };
        for outcome in replay(&source, &specs, &options, None, &|_, _| {}).unwrap() {
            prop_assert!(outcome.is_complete(), "{}", outcome.status());
            prop_assert_eq!(outcome.counts.forced, 0, "{}", outcome.heuristic);
            prop_assert_eq!(outcome.counts.thread_instructions(), outcome.upper_bound);
            prop_assert!(outcome.counts.fetches() >= outcome.lower_bound, "{}", outcome.heuristic);
            prop_assert_eq!(outcome.found::<Causes>().unwrap().total(), outcome.lost_slots());
        }
    }

    #[test]
    fn barriers_and_locks_go_together(program in statements(3), lanes in 1u64..9) {
        let source = InMemory::new(&does(&program, lanes)).under(Locks::Simt);
        let specs: Vec<Spec> = REGISTRY.iter().map(|e| Spec::parse(e.name).unwrap()).collect();
        for outcome in replay(&source, &specs, &options(), None, &|_, _| {}).unwrap() {
            prop_assert!(outcome.is_complete(), "{}", outcome.status());
            prop_assert_eq!(outcome.counts.forced, 0, "{}", outcome.heuristic);
        }
    }

    #[test]
    fn the_smallest_pc_makes_the_fetches_of_the_reference(program in sections(4), lanes in 1u64..9) {
        let does = does(&program, lanes);
        let minpc = [Spec::parse("minpc").unwrap()];
        let outcomes = replay(&InMemory::new(&does).under(Locks::Simt), &minpc, &options(), None, &|_, _| {}).unwrap();
        prop_assert_eq!(&outcomes[0].counts.active, &Reference::run(&does));
    }

    #[test]
    fn runs_and_steps_and_pieces_give_the_same(program in sections(3), lanes in 1u64..9, codes in 1usize..9) {
        let does = does(&program, lanes);
        let specs: Vec<Spec> = REGISTRY.iter().map(|e| Spec::parse(e.name).unwrap()).collect();
        let hashed = ReplayOptions { measures: vec![ScheduleHashes::measure(), Checker::measure()], ..options() };
        let by_runs = replay(&InMemory::new(&does).under(Locks::Simt), &specs, &options(), None, &|_, _| {}).unwrap();
        let by_steps = replay(&InMemory::in_batches(&does, codes).under(Locks::Simt), &specs, &hashed, None, &|_, _| {}).unwrap();
        for (a, b) in by_runs.iter().zip(&by_steps) {
            prop_assert_eq!(&a.counts, &b.counts, "{}", a.heuristic);
            prop_assert_eq!(&a.tally, &b.tally, "{}", a.heuristic);
        }
    }
}
