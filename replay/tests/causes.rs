//! Small programs whose lost lane-slots can be counted by hand: cause, place of parting, and the instruction fetched
//! meanwhile.

use heuristics::Spec;
use replay::in_memory::{Does, InMemory};
use replay::metrics::{Cause, Causes, Checker};
use replay::{Control, EpisodeId, LockId, ReplayOptions, replay};
use trace_format::{Instruction, Kind, Pc, SpEffect};

fn at(pc: u64, kind: Kind) -> Does {
    let sp = match kind {
        Kind::Call | Kind::IndirectCall => -8,
        Kind::Return => 8,
        _ => 0,
    };
    Does::Runs(Instruction { pc: Pc(pc), len: 1, kind, sp: SpEffect::Add(sp), memory: 0 }, Vec::new())
}

fn plain(pcs: impl IntoIterator<Item = u64>) -> Vec<Does> {
    pcs.into_iter().map(|pc| at(pc, Kind::Plain)).collect()
}

fn causes(lanes: &[Vec<Does>], size: usize) -> Causes {
    let options = ReplayOptions {
        measures: vec![Checker::measure(), Causes::measure()],
        warp_size: Some(size),
        ..ReplayOptions::default()
    };
    let specs = [Spec::parse("minpc").unwrap()];
    let outcome = replay(&InMemory::new(lanes), &specs, &options, None, &|_, _| {}).unwrap().remove(0);
    let causes = outcome.found::<Causes>().unwrap().clone();
    assert_eq!(causes.total(), outcome.lost_slots());
    causes
}

/// (cause, parted at, issued, slots), over all paths.
fn charges(causes: &Causes) -> Vec<(Cause, Option<u64>, u64, u64)> {
    causes.charges.iter().map(|(c, slots)| (c.cause, c.parted_at.map(|p| p.0), c.issued.0, *slots)).collect()
}

#[test]
fn the_worked_number_of_the_metric() {
    let branch = || vec![at(10, Kind::Branch)];
    let taken = [branch(), plain([20]), vec![at(21, Kind::Jump)], plain([50])].concat();
    let not = [branch(), plain([30, 31, 32]), plain([50])].concat();
    let causes = causes(&[taken.clone(), taken, not], 4);
    assert_eq!((causes.total(), causes.lost_to(Cause::EmptySeat), causes.lost_to(Cause::Branch)), (15, 7, 8));
    let of_branch: Vec<_> = charges(&causes).into_iter().filter(|c| c.0 == Cause::Branch).collect();
    let expected = [(20, 1), (21, 1), (30, 2), (31, 2), (32, 2)];
    assert_eq!(of_branch, expected.map(|(pc, slots)| (Cause::Branch, Some(10), pc, slots)));
}

#[test]
fn a_lane_that_leaves_a_loop_earlier_is_charged_to_the_loop() {
    let trips = |n: usize| {
        let mut lane = plain([10]);
        for _ in 0..n {
            lane.extend([at(11, Kind::Plain), at(12, Kind::Branch)]);
        }
        lane.extend(plain([13]));
        lane
    };
    let causes = causes(&[trips(1), trips(3)], 2);
    let expected = [11, 12].map(|pc| (Cause::LoopTripCount, Some(12), pc, 2));
    assert_eq!(charges(&causes), expected);
}

#[test]
fn a_branch_inside_a_loop_that_stays_inside_is_a_branch() {
    let lane = |odd: bool| {
        let mut lane = Vec::new();
        for _ in 0..2 {
            lane.push(at(10, Kind::Branch));
            if odd {
                lane.extend(plain([11]));
            }
            lane.push(at(12, Kind::Branch));
        }
        lane.extend(plain([13]));
        lane
    };
    assert_eq!(charges(&causes(&[lane(true), lane(false)], 2)), [(Cause::Branch, Some(10), 11, 2)]);
}

#[test]
fn functions_called_through_a_pointer_are_call_targets() {
    let lane = |callee: u64| {
        vec![at(10, Kind::IndirectCall), at(callee, Kind::Plain), at(callee + 1, Kind::Return), at(11, Kind::Plain)]
    };
    // Both callees lie below the caller, so that minpc brings the lanes together after them.
    let causes = causes(&[lane(2), lane(5)], 2);
    let expected = [2, 3, 5, 6].map(|pc| (Cause::CallTarget, Some(10), pc, 1));
    assert_eq!(charges(&causes), expected);
    let paths: Vec<Vec<u64>> =
        causes.charges.iter().map(|(c, _)| causes.paths.entries(c.path).iter().map(|p| p.0).collect()).collect();
    assert_eq!(paths, [[10, 2], [10, 2], [10, 5], [10, 5]]);
}

#[test]
fn lanes_behind_a_lock_are_charged_to_it_until_they_meet_again() {
    let lock = LockId(0);
    let lane = || {
        [
            plain([10]),
            vec![Does::Comes(Control::Acquire(lock))],
            plain([11]),
            vec![Does::Comes(Control::Release(lock))],
            plain([12]),
        ]
        .concat()
    };
    // Under minpc the second lane runs 11 as soon as the lock is free, and then they meet at 12.
    assert_eq!(charges(&causes(&[lane(), lane()], 2)), [(Cause::Lock, Some(10), 11, 2)]);
}

#[test]
fn a_lane_at_a_barrier_and_one_at_its_end_are_charged_to_the_parting_branch() {
    let meet = || vec![Does::Comes(Control::Meet(EpisodeId(0)))];
    let early = [vec![at(10, Kind::Branch)], meet(), plain([30])].concat();
    let late = [vec![at(10, Kind::Branch)], plain([20, 21]), meet(), plain([30, 31])].concat();
    let expected =
        [(Cause::Barrier, Some(10), 20, 1), (Cause::Barrier, Some(10), 21, 1), (Cause::Finished, Some(30), 31, 1)];
    assert_eq!(charges(&causes(&[early, late], 2)), expected);
}

#[test]
fn lanes_that_never_met_are_charged_to_the_schedule() {
    let expected = [(Cause::Schedule, None, 10, 1), (Cause::Finished, None, 20, 1)];
    assert_eq!(charges(&causes(&[plain([10]), plain([20])], 2)), expected);
}
