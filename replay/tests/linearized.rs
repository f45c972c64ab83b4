//! Fetches of linearized branches, counted by hand.

use heuristics::Spec;
use replay::in_memory::{Does, InMemory};
use replay::metrics::Causes;
use replay::{Prepared, ReplayOptions, linearized_fetches};
use trace_format::{Instruction, Kind, Pc, SpEffect};

fn at(pc: u64, kind: Kind) -> Does {
    Does::Runs(Instruction { pc: Pc(pc), len: 1, kind, sp: SpEffect::Add(0), memory: 0 }, Vec::new())
}

/// 10 11, then 20 21 22 or 30 31 32, then 40, as often as there are turns.
fn lane(turns: &[bool]) -> Vec<Does> {
    let mut does = Vec::new();
    for (number, left) in turns.iter().enumerate() {
        does.extend([at(10, Kind::Plain), at(11, Kind::Branch)]);
        let side = if *left { 20 } else { 30 };
        does.extend([at(side, Kind::Plain), at(side + 1, Kind::Plain), at(side + 2, Kind::Jump)]);
        does.push(at(40, if number + 1 < turns.len() { Kind::Branch } else { Kind::Plain }));
    }
    does
}

/// Skipped and linearized fetches.
fn fetches(lanes: &[Vec<Does>], size: usize) -> (u64, u64) {
    let source = InMemory::new(lanes);
    let prepared = Prepared::new(&source, true).unwrap();
    let measures = vec![Causes::measure()];
    let options = ReplayOptions { warp_size: Some(size), measures, ..ReplayOptions::default() };
    let outcomes = prepared.replay(&[Spec::parse("ipdom").unwrap()], &options, None, &|_, _| {}).unwrap();
    let linearized = linearized_fetches(prepared.program(), outcomes[0].found::<Causes>().unwrap()).unwrap();
    (outcomes[0].counts.fetches(), linearized)
}

#[test]
fn both_sides_run_where_all_lanes_go_one_way() {
    let (left, right) = (lane(&[true]), lane(&[false]));
    assert_eq!(fetches(&[left.clone(), left.clone(), right.clone(), right.clone()], 2), (2 * 6, 2 * 9));
    // Where lanes part both sides run anyway.
    assert_eq!(fetches(&[left.clone(), right.clone()], 2), (9, 9));
    // What no lane runs is not known.
    assert_eq!(fetches(&[left.clone(), left], 2), (6, 6));
}

#[test]
fn a_loop_turns_as_often_as_its_longest_lane_and_runs_both_sides_each_time() {
    let lanes = [lane(&[true, true, false]), lane(&[true])];
    assert_eq!(fetches(&lanes, 2), (3 * 6, 3 * 9));
}
