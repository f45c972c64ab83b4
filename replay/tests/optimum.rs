//! On small random lanes the best schedule is found by trying all: no bound is above it, no model is below it, and the
//! optimum told for two lanes is it.

use std::collections::HashMap;

use heuristics::{REGISTRY, Spec};
use proptest::prelude::*;
use replay::in_memory::{Does, InMemory};
use replay::{Control, Optimum, ReplayOptions, replay};
use trace_format::{Instruction, Kind, Pc, SpEffect};

/// A lane's instructions by phase: every lane has as many phases, with a barrier between.
type Lane = Vec<Vec<u64>>;

fn does(lane: &Lane) -> Vec<Does> {
    let mut all = Vec::new();
    for (i, phase) in lane.iter().enumerate() {
        if i > 0 {
            all.push(Does::Comes(Control::MeetAll));
        }
        // Each instruction may be followed by any other: all of them transfer control.
        all.extend(phase.iter().map(|pc| {
            let instruction = Instruction { pc: Pc(*pc), len: 1, kind: Kind::Branch, sp: SpEffect::Add(0), memory: 0 };
            Does::Runs(instruction, Vec::new())
        }));
    }
    all
}

/// The fewest fetches of one phase, from these places of the lanes on: every subset of the lanes at a pc is tried.
fn best(lanes: &[&[u64]], known: &mut HashMap<Vec<usize>, u64>) -> u64 {
    let left: Vec<usize> = lanes.iter().map(|l| l.len()).collect();
    if left.iter().all(|l| *l == 0) {
        return 0;
    }
    if let Some(best) = known.get(&left) {
        return *best;
    }
    let mut least = u64::MAX;
    for chosen in 1u32..1 << lanes.len() {
        let active = |l: usize| chosen >> l & 1 == 1;
        let mut pcs = (0..lanes.len()).filter(|l| active(*l)).map(|l| lanes[l].first());
        let first = pcs.next().flatten();
        if first.is_none() || pcs.any(|pc| pc != first) {
            continue;
        }
        let after: Vec<&[u64]> = (0..lanes.len()).map(|l| if active(l) { &lanes[l][1..] } else { lanes[l] }).collect();
        least = least.min(1 + best(&after, known));
    }
    known.insert(left, least);
    least
}

fn by_trying_all(lanes: &[Lane]) -> u64 {
    let phase = |p: usize| lanes.iter().map(|l| l[p].as_slice()).collect::<Vec<_>>();
    (0..lanes[0].len()).map(|p| best(&phase(p), &mut HashMap::new())).sum()
}

fn lanes(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Lane>> {
    (1usize..4).prop_flat_map(move |phases| {
        let phase = prop::collection::vec(1u64..6, 1..6);
        prop::collection::vec(prop::collection::vec(phase, phases), count.clone())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_model_beats_the_best_and_no_bound_is_above_it(lanes in lanes(1..4)) {
        let source = InMemory::new(&lanes.iter().map(does).collect::<Vec<_>>());
        let specs: Vec<Spec> = REGISTRY.iter().map(|e| Spec::parse(e.name).unwrap()).collect();
        let best = by_trying_all(&lanes);
        for outcome in replay(&source, &specs, &ReplayOptions::default(), None, &|_, _| {}).unwrap() {
            prop_assert!(outcome.is_complete(), "{}", outcome.status());
            prop_assert!(outcome.counts.fetches() >= best, "{}", outcome.heuristic);
            prop_assert!(outcome.lower_bound <= best);
        }
    }

    #[test]
    fn the_optimum_of_two_lanes_is_the_best_of_all_schedules(lanes in lanes(2..3)) {
        let source = InMemory::new(&lanes.iter().map(does).collect::<Vec<_>>());
        let outcomes = replay(&source, &[Spec::parse("minpc").unwrap()], &ReplayOptions::default(), None, &|_, _| {}).unwrap();
        prop_assert_eq!(outcomes[0].optimum, Optimum::Fetches(by_trying_all(&lanes)));
    }
}

#[test]
fn a_barrier_raises_the_bound() {
    // Without the barrier one fetch of 1 would serve both lanes.
    let lanes = [vec![vec![1], vec![2]], vec![vec![2], vec![1]]];
    let source = InMemory::new(&lanes.map(|l| does(&l)));
    let outcomes =
        replay(&source, &[Spec::parse("minpc").unwrap()], &ReplayOptions::default(), None, &|_, _| {}).unwrap();
    assert_eq!((outcomes[0].lower_bound, outcomes[0].optimum), (4, Optimum::Fetches(4)));
}
