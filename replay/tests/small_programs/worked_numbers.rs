//! Small programs whose fetches were counted by hand and by other simulators: four lanes each.

use heuristics::Spec;
use replay::in_memory::InMemory;
use replay::metrics::Checker;
use replay::{ReplayOptions, replay};

use crate::written::lane;

/// Asserts thread instructions, and fetches under minpc, minsp-pc, maxfun-minpc:mode=1, long:n=4 and ipdom.
fn check(lanes: [&str; 4], thread_instructions: u64, fetches: [u64; 5]) {
    let source = InMemory::new(&lanes.map(lane));
    let specs = Spec::parse_list("minpc,minsp-pc,maxfun-minpc:mode=1,long:n=4,ipdom").unwrap();
    let options = ReplayOptions { measures: vec![Checker::measure()], ..ReplayOptions::default() };
    let outcomes = replay(&source, &specs, &options, None, &|_, _| {}).unwrap();
    assert!(outcomes.iter().all(|o| o.counts.thread_instructions() == thread_instructions), "{outcomes:?}");
    let counted: Vec<u64> = outcomes.iter().map(|o| o.counts.fetches()).collect();
    assert_eq!(counted, fetches);
}

#[test]
fn a_diamond_whose_join_comes_last() {
    let (then, otherwise) = ("1-2b 3-5b 7-8", "1-2b 6 7-8");
    check([then, otherwise, then, otherwise], 24, [8, 8, 8, 8, 8]);
}

#[test]
fn a_diamond_whose_else_arm_lies_after_the_join() {
    let (then, otherwise) = ("1-2b 3-5 6-7r", "1-2b 8-9b 6-7r");
    check([otherwise, then, otherwise, then], 26, [11, 11, 11, 9, 9]);
}

#[test]
fn a_loop_of_three_instructions_with_trip_counts_one_to_four() {
    let trips = |n: usize| format!("{} 6-8", vec!["3-5b"; n].join(" "));
    let lanes: Vec<String> = (1..=4).map(trips).collect();
    check([&lanes[0], &lanes[1], &lanes[2], &lanes[3]], 42, [15, 15, 15, 15, 15]);
}

#[test]
fn a_callee_above_its_caller_called_from_both_arms() {
    let (then, otherwise) = ("1-2b 3c 30-34r 4b 7-8", "1-2b 5c 30-34r 6 7-8");
    check([then, otherwise, then, otherwise], 44, [13, 18, 18, 13, 18]);
}

#[test]
fn a_callee_below_its_caller_called_from_both_arms() {
    let (then, otherwise) = ("41-42b 43c 30-34r 44b 47-48", "41-42b 45c 30-34r 46 47-48");
    check([then, otherwise, then, otherwise], 44, [18, 18, 18, 13, 18]);
}

#[test]
fn the_same_after_fusing_the_two_call_sites() {
    check(["1-5c 30-34r 6-7"; 4], 48, [12, 12, 12, 12, 12]);
}

#[test]
fn an_unstructured_condition() {
    // if (a || b) X; Y, where X ends with a jump to Y: a holds for lane 0, b for lane 1.
    let (a, b, neither) = ("1-2b 5-7b 8-9", "1-2b 3-4b 5-7b 8-9", "1-2b 3-4b 8-9");
    check([a, b, neither, neither], 28, [9, 9, 9, 12, 12]);
}
