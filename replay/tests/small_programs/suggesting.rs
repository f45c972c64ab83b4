//! What is suggested for programs of which it is known where collecting lanes pays.

use heuristics::Spec;
use replay::in_memory::{Does, InMemory};
use replay::suggest::{Pattern, Suggestions, Tried, suggest};
use replay::{Prepared, ReplayOptions};
use trace_format::Pc;

/// Lanes by the blocks that they run: block `b` is `lengths[b]` branches at `0x1000 * b`.
fn suggested(lengths: &[u64], lanes: &[Vec<usize>]) -> Suggestions {
    let block = |b: &usize| (0..lengths[*b]).map(|i| Does::branches(0x1000 * *b as u64 + i)).collect::<Vec<_>>();
    let lanes: Vec<Vec<Does>> = lanes.iter().map(|lane| lane.iter().flat_map(block).collect()).collect();
    let source = InMemory::new(&lanes);
    let mut prepared = Prepared::new(&source, true).unwrap();
    let model = Spec::parse("barrier").unwrap();
    suggest(&mut prepared, &model, &ReplayOptions::default(), usize::MAX, &[2], &|_, _| {}).unwrap()
}

fn at(found: &Suggestions, block: u64) -> &Tried {
    let is_there = |tried: &&Tried| tried.candidate.at == Pc(0x1000 * block);
    found.tried.iter().find(is_there).unwrap_or_else(|| panic!("block {block} was not tried: {found:?}"))
}

/// A loop of so many turns, 1 its prolog, 3 what a lane runs in the turns of which its number is the remainder, 4 its
/// epilog.
fn delayed(lanes: usize, turns: usize) -> Vec<Vec<usize>> {
    let turn = |lane: usize, turn: usize| if turn % lanes == lane { vec![1, 3, 4] } else { vec![1, 4] };
    let lane = |lane: usize| (0..turns).flat_map(|t| turn(lane, t)).chain([5]).collect();
    (0..lanes).map(lane).collect()
}

#[test]
fn an_expensive_body_that_lanes_run_in_different_turns_is_where_to_wait() {
    let found = suggested(&[0, 1, 0, 40, 1, 1], &delayed(4, 16));
    // Apart: 16 bodies of 40; together: 4, and a few turns more of the cheap rest.
    assert_eq!(found.before.counts.fetches(), 16 * 42 + 1);
    let best = &found.tried[0];
    assert_eq!((best.candidate.at, best.candidate.pattern), (Pc(0x3000), Pattern::IterationDelay));
    assert!(best.issued().unwrap() < 4 * 40 + 4 * 16 * 2, "{found:?}");
    assert_eq!(best.trials[0].prediction.threshold, None);
}

#[test]
fn a_rare_cheap_body_behind_an_expensive_prolog_is_not() {
    let found = suggested(&[0, 40, 0, 1, 1, 1], &delayed(4, 16));
    let before = found.before.counts.fetches();
    assert_eq!(before, 16 * 42 + 1);
    assert!(at(&found, 3).trials.iter().all(|trial| trial.outcome.counts.fetches() > before), "{found:?}");
    assert!(found.tried.iter().all(|tried| tried.issued() >= Some(before)), "{found:?}");
}

#[test]
fn of_three_nested_loops_the_one_is_found_whose_turns_differ() {
    // 1 the outer loop's block, 2 the middle one's, 3 the inner one's: it runs as often as lane and turn have it, and
    // the middle one twice for each.
    let trips = |lane: usize, turn: usize| if (lane + turn).is_multiple_of(4) { 16 } else { 1 };
    let lane = |lane: usize| -> Vec<usize> {
        let middle = |turn: usize| std::iter::once(2).chain(std::iter::repeat_n(3, trips(lane, turn)));
        let outer = |turn: usize| std::iter::once(1).chain(middle(turn)).chain(middle(turn));
        (0..8).flat_map(outer).chain([4]).collect()
    };
    let found = suggested(&[0, 2, 2, 5, 1], &(0..4).map(lane).collect::<Vec<_>>());
    let best = &found.tried[0];
    assert_eq!((best.candidate.at, best.candidate.pattern), (Pc(0x3000), Pattern::LoopMerge));
    let (before, after) = (found.before.counts.fetches(), best.issued().unwrap());
    assert!(after * 3 < before * 2, "{before} {after}");
    assert!(at(&found, 2).issued().unwrap() > after && at(&found, 1).issued().unwrap() > after);
}
