//! Lanes that yield at locks, under `hanoi`: schedules worked out by hand.

use heuristics::Spec;
use replay::in_memory::InMemory;
use replay::{Locks, Outcome, ReplayOptions, replay};

use crate::written::lane;

fn outcome(lanes: &[&str], model: &str) -> Outcome {
    let lanes: Vec<_> = lanes.iter().map(|l| lane(l)).collect();
    let source = InMemory::new(&lanes).under(Locks::Serialize);
    let specs = Spec::parse_list(model).unwrap();
    replay(&source, &specs, &ReplayOptions::default(), None, &|_, _| {}).unwrap().remove(0)
}

fn fetches(lanes: &[&str]) -> u64 {
    outcome(lanes, "hanoi").counts.fetches()
}

#[test]
fn lanes_that_waited_for_a_lock_are_not_awaited_behind_it_nor_behind_what_is_around() {
    // 1 (all), 2 (0 and 1), 3 (0), 3 (1); lane 0 had not to wait, and meets lane 2: 5 6 7 (0 and 2), 5 6 7 (1).
    let takes = "1b 2 + 3 - 4 5 6 7";
    assert_eq!(fetches(&[takes, takes, "1b 5 6 7"]), 12);
    // With a lock each nobody waits: 1 (all), 2 3 4 (0 and 1), 5 6 7 (all).
    assert_eq!(fetches(&[takes, "1b 2 +1 3 -1 4 5 6 7", "1b 5 6 7"]), 7);
}

#[test]
fn at_a_barrier_of_the_program_lanes_that_yielded_meet_again() {
    // 1 (both), 2 3 (0), 2 3 (1), 4 5 (both).
    assert_eq!(fetches(&["1 + 2 - 3 ! 4 5"; 2]), 7);
    assert_eq!(fetches(&["1 + 2 - 3 4 5"; 2]), 9);
}

#[test]
fn the_code_of_locks_is_counted_apart_from_the_fetches() {
    let lanes = ["1 + 2 - 3"; 4];
    let port = outcome(&lanes, "hanoi:predicate=4");
    let options = ReplayOptions { locks: Some(Locks::Simt), ..ReplayOptions::default() };
    let lanes: Vec<_> = lanes.iter().map(|l| lane(l)).collect();
    let source = InMemory::new(&lanes).under(Locks::Serialize);
    let specs = Spec::parse_list("hanoi:predicate=4").unwrap();
    let meeting = replay(&source, &specs, &options, None, &|_, _| {}).unwrap().remove(0);
    // Each lane has a turn of 64; where they meet, the others try with it: 3, 2, 1 and none.
    assert_eq!((port.counts.lock_fetches, port.counts.lock_instructions), (4 * 64, 4 * 64));
    assert_eq!((meeting.counts.lock_fetches, meeting.counts.lock_instructions), (4 * 64, 4 * 64 + 6 * 20));
    assert_eq!((port.counts.fetches(), meeting.counts.fetches()), (9, 6));
    let active = f64::from(12 + 4 * 64 + 6 * 20) / f64::from(4 * (6 + 4 * 64));
    assert!((meeting.active_efficiency().unwrap() - active).abs() < 1e-12);
    let ignoring = ReplayOptions { locks: Some(Locks::Ignore), ..ReplayOptions::default() };
    let ignored = replay(&source, &specs, &ignoring, None, &|_, _| {}).unwrap().remove(0);
    assert_eq!((ignored.counts.fetches(), ignored.counts.lock_fetches), (3, 0));
}
