//! The models of single warps beside each other on the small programs of worked_numbers.rs: four lanes each.

use heuristics::Spec;
use replay::in_memory::{Does, InMemory};
use replay::metrics::Checker;
use replay::{Outcome, ReplayOptions, replay};

use crate::written::lane;

fn outcomes(lanes: &[&str], heuristics: &str) -> Vec<Outcome> {
    let lanes: Vec<Vec<Does>> = lanes.iter().map(|l| lane(l)).collect();
    let options = ReplayOptions { measures: vec![Checker::measure()], ..ReplayOptions::default() };
    replay(&InMemory::new(&lanes), &Spec::parse_list(heuristics).unwrap(), &options, None, &|_, _| {}).unwrap()
}

/// Asserts fetches: those of ipdom, dual-path, multi-path, barrier and hanoi (the same), then tf-stack, tf-branch,
/// multi-path:merge=yes, barrier:meet=anywhere, none.
fn check(lanes: [&str; 4], paths: u64, others: [u64; 5]) {
    let all = outcomes(
        &lanes,
        "ipdom,dual-path,multi-path,barrier,hanoi:placement=binary,tf-stack,tf-branch,multi-path:merge=yes,barrier:meet=anywhere,none",
    );
    let counted: Vec<u64> = all.iter().map(|o| o.counts.fetches()).collect();
    assert_eq!(counted[..5], [paths; 5]);
    assert_eq!(counted[5..], others);
    assert_eq!(all[9].counts.fetches(), all[9].upper_bound);
}

#[test]
fn a_diamond_whose_join_comes_last() {
    let (then, otherwise) = ("1-2b 3-5b 7-8", "1-2b 6 7-8");
    check([then, otherwise, then, otherwise], 8, [8, 8, 8, 8, 24]);
}

#[test]
fn a_diamond_whose_else_arm_lies_after_the_join() {
    let (then, otherwise) = ("1-2b 3-5 6-7r", "1-2b 8-9b 6-7r");
    check([otherwise, then, otherwise, then], 9, [9, 9, 9, 9, 26]);
}

#[test]
fn a_loop_of_three_instructions_with_trip_counts_one_to_four() {
    let trips = |n: usize| format!("{} 6-8", vec!["3-5b"; n].join(" "));
    let lanes: Vec<String> = (1..=4).map(trips).collect();
    check([&lanes[0], &lanes[1], &lanes[2], &lanes[3]], 15, [15, 15, 15, 15, 42]);
}

#[test]
fn a_callee_above_its_caller_called_from_both_arms() {
    // Without frames of their own, lanes share the callee: 13 fetches.
    let (then, otherwise) = ("1-2b 3c 30-34r 4b 7-8", "1-2b 5c 30-34r 6 7-8");
    check([then, otherwise, then, otherwise], 18, [18, 18, 13, 13, 44]);
}

#[test]
fn a_callee_below_its_caller_called_from_both_arms() {
    let (then, otherwise) = ("41-42b 43c 30-34r 44b 47-48", "41-42b 45c 30-34r 46 47-48");
    check([then, otherwise, then, otherwise], 18, [18, 18, 18, 18, 44]);
}

/// While lane 0 waits at the barrier, on top of the stack, the others go round a loop and meet behind it: 1 + 2 + 9 + 3
/// + 1.
#[test]
fn lanes_reconverge_below_a_stack_entry_that_waits_at_a_barrier() {
    let trips = |n: usize| format!("1b {} 6-8 ! 9", vec!["3-5b"; n].join(" "));
    check(["1b 20-21 ! 9", &trips(1), &trips(2), &trips(3)], 16, [16, 16, 16, 16, 37]);
}

/// The same with a branch in the loop, whose arms part and join below the entry that waits, and a second such barrier.
#[test]
fn nested_branches_part_and_join_below_a_stack_entry_that_waits() {
    let lane = |arms: [&str; 2]| {
        let turns: Vec<_> = arms.iter().map(|arm| format!("3b {arm} 7b")).collect();
        format!("1b {} 8-9 ! 30b 31 ! 40", turns.join(" "))
    };
    let (a, b) = ("4-5b", "6");
    let lanes = ["1b 20-21 ! 30b 33-34 ! 40".to_owned(), lane([a, b]), lane([b, a]), lane([a, a])];
    check([&lanes[0], &lanes[1], &lanes[2], &lanes[3]], 20, [20, 20, 20, 20, 47]);
}

#[test]
fn the_same_after_fusing_the_two_call_sites() {
    check(["1-5c 30-34r 6-7"; 4], 12, [12, 12, 12, 12, 48]);
}

#[test]
fn an_unstructured_condition() {
    let (a, b, neither) = ("1-2b 5-7b 8-9", "1-2b 3-4b 5-7b 8-9", "1-2b 3-4b 8-9");
    check([a, b, neither, neither], 12, [9, 9, 9, 9, 28]);
}

#[test]
fn a_loop_that_is_left_by_two_ways_meets_its_lanes_at_a_shared_end() {
    // 1 leaves the loop for 9, 2 for 4 and then 9, 3 goes round. The post-dominator of both is 9, so 4 runs twice.
    let by_a = "1b 9";
    let by_b = "1b 2b 4 9";
    let round = "1b 2b 3b 1b 2b 4 9";
    check([by_a, by_b, round, round], 8, [7, 7, 7, 7, 20]);
}

#[test]
fn a_lock_stops_the_models_that_hold_its_holder_back() {
    // Each lane holds the lock from 2 to 3.
    let lanes = ["1 + 2b 3b - 4"; 3];
    for outcome in outcomes(&lanes, "ipdom,dual-path,multi-path,multi-path:merge=yes,tf-stack,tf-branch,wave") {
        assert!(!outcome.is_complete(), "{}", outcome.heuristic);
        assert!(outcome.status().contains("held by {0}"), "{}", outcome.status());
    }
    for outcome in outcomes(&lanes, "barrier,barrier:meet=anywhere,hanoi,none") {
        assert_eq!(outcome.status(), "ok", "{}", outcome.heuristic);
    }
}
