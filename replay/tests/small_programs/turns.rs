//! Lanes that take turns at locks (`--locks simt`): schedules worked out by hand.

use heuristics::{REGISTRY, Spec};
use replay::in_memory::{Does, InMemory};
use replay::metrics::{Causes, Checker, Contention};
use replay::{Locks, Outcome, ReplayOptions, replay};

use crate::written::lane;

fn outcomes(lanes: &[&str], heuristics: &str, locks: Locks) -> Vec<Outcome> {
    let lanes: Vec<Vec<Does>> = lanes.iter().map(|l| lane(l)).collect();
    let options = ReplayOptions {
        measures: vec![Checker::measure(), Causes::measure(), Contention::measure()],
        ..ReplayOptions::default()
    };
    let specs = match heuristics {
        "all" => REGISTRY.iter().map(|e| Spec::parse(e.name).unwrap()).collect(),
        list => Spec::parse_list(list).unwrap(),
    };
    replay(&InMemory::new(&lanes).under(locks), &specs, &options, None, &|_, _| {}).unwrap()
}

/// Models that share fetches wherever lanes stand at one pc, and none of which can know better.
const SHARING: &str = "minpc,minsp-pc,maxfun-minpc,ipdom,tf-stack,tf-branch,dual-path,multi-path,barrier,barrier:meet=anywhere,hanoi,wave,dws,tbc,lwm,lee";

/// Asserts the fetches of lanes that take turns, the same under each of these models.
fn check(lanes: &[&str], heuristics: &str, fetches: u64) {
    for outcome in outcomes(lanes, heuristics, Locks::Simt) {
        assert_eq!(outcome.status(), "ok", "{}", outcome.heuristic);
        assert_eq!((outcome.counts.fetches(), outcome.counts.forced), (fetches, 0), "{}", outcome.heuristic);
        assert_eq!(outcome.counts.thread_instructions(), outcome.upper_bound);
        assert_eq!(outcome.found::<Causes>().unwrap().total(), outcome.lost_slots());
    }
}

#[test]
fn lanes_that_want_one_lock_take_turns_and_meet_behind_it() {
    // 1 (all); 2 3 (lane 0), 2 3 (1), 2 3 (2); 4 (all).
    check(&["1 + 2b 3b - 4"; 3], SHARING, 8);
}

#[test]
fn lanes_with_different_locks_run_side_by_side() {
    check(&["1 + 2b 3b - 4", "1 +1 2b 3b -1 4", "1 +2 2b 3b -2 4"], SHARING, 4);
    // Two of them want one: 1; 2 3 (lanes 0 and 2), 2 3 (1); 4.
    check(&["1 + 2b 3b - 4", "1 + 2b 3b - 4", "1 +2 2b 3b -2 4"], SHARING, 6);
}

#[test]
fn readers_share_a_turn_and_a_writer_has_one_of_its_own() {
    // 1; 2 (lanes 0 and 2), 2 (1); 3.
    check(&["1 ~ 2 - 3", "1 + 2 - 3", "1 ~ 2 - 3"], SHARING, 4);
}

#[test]
fn lanes_part_and_meet_inside_of_a_turn() {
    // Each lane has a lock: 1 2 (both), 3 (lane 0), 5 (both), 6 (both).
    check(&["1 + 2b 3 5b - 6", "1 +1 2b 5b -1 6"], SHARING, 5);
}

#[test]
fn a_lock_inside_of_a_lock_makes_turns_inside_of_a_turn() {
    // Both rows side by side: 1 2 (all); 3 (lane 0), 3 (1); 4 5 (all).
    check(&["1 +1 2 +9 3 -9 4 -1 5", "1 +2 2 +9 3 -9 4 -2 5"], SHARING, 6);
    // Four lanes, two rows: 1; (2; 3, 3; 4) twice; 5.
    let (even, odd) = ("1 +1 2 +9 3 -9 4 -1 5", "1 +2 2 +9 3 -9 4 -2 5");
    check(&[even, odd, even, odd], SHARING, 10);
}

#[test]
fn a_section_lasts_until_nothing_is_left_that_was_taken_in_it() {
    // Hand over hand: 1; 2 3 4 (lane 0), 2 3 4 (lane 1); 5.
    check(&["1 +1 2 +2 -1 3 +3 -2 4 -3 5"; 2], SHARING, 8);
}

#[test]
fn lanes_that_come_by_two_ways_make_two_sections() {
    // 1 (both); 10 11 12 (lane 0), 20 21 22 (lane 1); 30 (both).
    check(&["1b 10 + 11 - 12b 30", "1b 20 + 21 - 22b 30"], "minpc,ipdom,barrier,tf-stack", 8);
}

#[test]
fn no_model_deadlocks_where_lanes_take_turns() {
    let programs: [&[&str]; 4] = [
        &["1 + 2b 3b - 4"; 3],
        &["1b + 2b 3b - 4", "1b 4"],
        &["1 +1 2b +9 3 -9 4b -1 5", "1 +2 2b +9 3 -9 4b -2 5", "1 +1 2b +9 3 -9 4b -1 5"],
        // No cycle of locks, and yet lane 0 has what lane 1 wants while it waits for lane 1 behind a section.
        &["1 +5 2 +6 3 -6 4 -5 9", "1 +4 2 +7 3 +5 8 -5 -7 4 -4 9"],
    ];
    for lanes in programs {
        for outcome in outcomes(lanes, "all", Locks::Simt) {
            assert_eq!((outcome.status().as_str(), outcome.counts.forced), ("ok", 0), "{}", outcome.heuristic);
            assert_eq!(outcome.counts.thread_instructions(), outcome.upper_bound, "{}", outcome.heuristic);
        }
    }
}

#[test]
fn lanes_behind_a_section_go_on_where_one_of_them_has_what_another_wants() {
    // Both reach a lock at 3, lane 0 with lock 5; lane 1 wants that one inside of its section there. 1 2 3 (both), 4
    // (lane 0), 8 4 (lane 1), 9.
    check(&["1 +5 2 +6 3 -6 4 -5 9", "1 +4 2 +7 3 +5 8 -5 -7 4 -4 9"], "minpc,ipdom", 7);
}

#[test]
fn two_lanes_that_take_two_locks_crosswise_are_forced_on() {
    // They reach the outer lock together, so that both have it when they reach the inner one.
    let outcome = outcomes(&["1 +1 2 +2 3 -2 -1 9", "1 +2 2 +1 3 -1 -2 9"], "minpc", Locks::Simt).remove(0);
    assert!(outcome.is_complete() && outcome.counts.forced > 0);
    assert_eq!(outcome.counts.thread_instructions(), outcome.upper_bound);
}

#[test]
fn a_model_that_deadlocks_gets_the_numbers_of_turns_and_says_so() {
    let lanes = ["1 + 2b 3b - 4"; 3];
    let models = "ipdom,minpc,barrier,barrier:yield=no";
    let both = outcomes(&lanes, models, Locks::Serialize);
    let (waiting, turns) = (outcomes(&lanes, models, Locks::Wait), outcomes(&lanes, models, Locks::Simt));
    assert!(!waiting[0].is_complete() && both[0].is_complete());
    assert_eq!((&both[0].counts, &both[0].deadlock), (&turns[0].counts, &waiting[0].deadlock().cloned()));
    let deadlock = both[0].deadlock.as_ref().unwrap();
    assert_eq!(deadlock.waits[0].at, [trace_format::Pc(2)]);
    assert!(deadlock.to_string().contains("lanes {1-2} wait for lock 0, held by {0}"), "{deadlock}");
    // The others wait, as the program is written.
    for i in [1, 2] {
        assert!(waiting[i].is_complete() && both[i].deadlock.is_none());
        assert_eq!(both[i].counts, waiting[i].counts, "{}", both[i].heuristic);
    }
    assert_eq!(both.iter().map(|o| o.rank.is_some()).collect::<Vec<_>>(), [true; 4]);
}

#[test]
fn contention_counts_lanes_that_wait_for_their_turn() {
    let outcome = outcomes(&["1 + 2b 3b - 4"; 3], "ipdom", Locks::Simt).remove(0);
    let used = outcome.found::<Contention>().unwrap().clone().locks.into_values().next().unwrap();
    // Two wait for lane 0's two fetches, one for lane 1's; whoever is behind the section waits for no lock.
    assert_eq!((used.acquisitions, used.waits, used.waiting_slots, used.fetches_held), (3, 2, 6, 6));
}
