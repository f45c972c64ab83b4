//! Small programs whose divergence, cycles and contention can be counted by hand.

use heuristics::Spec;
use replay::in_memory::{Does, InMemory};
use replay::metrics::{Checker, Contention, Cycles, Divergence, LockSite, LockUse, Passes};
use replay::{Control, EpisodeId, LockId, Outcome, ReplayOptions, replay};
use trace_format::{Instruction, Kind, Pc, SpEffect};

fn at(pc: u64, kind: Kind) -> Does {
    Does::Runs(Instruction { pc: Pc(pc), len: 1, kind, sp: SpEffect::Add(0), memory: 0 }, Vec::new())
}

fn plain(pcs: impl IntoIterator<Item = u64>) -> Vec<Does> {
    pcs.into_iter().map(|pc| at(pc, Kind::Plain)).collect()
}

fn branch(pc: u64) -> Vec<Does> {
    vec![at(pc, Kind::Branch)]
}

fn comes(control: Control) -> Vec<Does> {
    vec![Does::Comes(control)]
}

fn replayed(lanes: &[Vec<Does>], model: &str, units: usize) -> Outcome {
    let options = ReplayOptions {
        measures: vec![Checker::measure(), Contention::measure(), Divergence::measure(), Cycles::measure(units)],
        ..ReplayOptions::default()
    };
    replay(&InMemory::new(lanes), &[Spec::parse(model).unwrap()], &options, None, &|_, _| {}).unwrap().remove(0)
}

fn divergence(lanes: &[Vec<Does>], model: &str) -> Divergence {
    replayed(lanes, model, 1).found::<Divergence>().unwrap().clone()
}

fn cycles(lanes: &[Vec<Does>], units: usize) -> u64 {
    replayed(lanes, "minpc", units).found::<Cycles>().unwrap().cycles
}

/// Four lanes run a branch; two take an arm of 3 instructions, two one of 1, and all run 1 more.
fn diamond() -> Vec<Vec<Does>> {
    let long = [branch(10), plain([20, 21]), branch(22), plain([40])].concat();
    let short = [branch(10), plain([30]), plain([40])].concat();
    vec![long.clone(), long, short.clone(), short]
}

#[test]
fn the_worked_number_of_divergence() {
    let found = divergence(&diamond(), "minpc");
    assert_eq!((found.joined, found.never_joined, found.length, found.longest), (1, 0, 4, 4));
    assert_eq!(found.by_length, [0, 0, 1]);
    assert_eq!((found.pcs, found.fetches, found.most_pcs), (10, 6, 2));
    assert_eq!((found.imbalance(), found.lone_fetches), (Some(1.5), 0));
}

#[test]
fn divergences_nest() {
    // Lane 2 goes another way at 10, lanes 0 and 1 part once more at 20.
    let lanes = [
        [branch(10), branch(20), branch(21), branch(25), plain([40])].concat(),
        [branch(10), branch(20), branch(25), plain([40])].concat(),
        [branch(10), branch(30), plain([40])].concat(),
    ];
    let found = divergence(&lanes, "minpc");
    // 10; 20 (0, 1); 21 (0); 25 (0, 1); 30 (2); 40: the inner one is 1 long, the outer one 4.
    assert_eq!((found.joined, found.length, found.longest), (2, 5, 4));
    assert_eq!(found.by_length, [1, 0, 1]);
    assert_eq!(found.lone_fetches, 2);
    // Inner: 2 x 1 / 1; outer: lanes ran 3, 2 and 1: 3 x 3 / 6.
    assert_eq!((found.slots, found.instructions), (2 + 9, 1 + 6));
}

#[test]
fn a_lane_that_ends_apart_is_never_joined() {
    let lanes = [[branch(10), plain([20])].concat(), [branch(10), plain([30, 31])].concat()];
    let found = divergence(&lanes, "minpc");
    assert_eq!((found.joined, found.never_joined), (0, 1));
    assert_eq!((found.mean_length(), found.imbalance()), (None, None));
    assert_eq!((found.pcs, found.lone_fetches), (1 + 2 + 1 + 1, 1));
}

#[test]
fn the_rest_of_a_company_joins_when_one_of_it_has_ended() {
    let lanes = [
        [branch(10), plain([20])].concat(),
        [branch(10), plain([30, 40])].concat(),
        [branch(10), branch(35), plain([40])].concat(),
    ];
    // 10; 20 (0); 30 (1); 35 (2); 40 (1, 2): three fetches lie between 10 and 40.
    let found = divergence(&lanes, "minpc");
    assert_eq!((found.joined, found.never_joined, found.length), (1, 0, 3));
}

#[test]
fn lanes_at_one_pc_that_run_one_after_another_are_apart_at_two() {
    let found = divergence(&[plain([1, 2]), plain([1, 2])], "none");
    // Both at 1; lane 1 at 1 and lane 0 at 2; then lane 1 alone.
    assert_eq!((found.pcs, found.most_pcs, found.fetches), (1 + 2 + 1 + 1, 2, 4));
    assert_eq!(found.joined + found.never_joined, 0);
}

#[test]
fn without_divergence_there_is_none() {
    let found = divergence(&[plain(1..9), plain(1..9)], "minpc");
    assert_eq!((found.joined, found.depth(), found.lone_fetches), (0, Some(1.0), 0));
}

#[test]
fn the_worked_number_of_fetch_units() {
    let of = |units| cycles(&diamond(), units);
    assert_eq!([1, 2, 3].map(of), [6, 5, 5]);
    let outcome = replayed(&diamond(), "minpc", 2);
    let cycles = outcome.found::<Cycles>().unwrap();
    assert_eq!(cycles.parallelism(outcome.counts.thread_instructions()), Some(16.0 / 5.0));
}

/// The passes of eight lanes, of which some take the long arm of the diamond.
fn passes(takes_long: fn(usize) -> bool, lanes_of_pass: usize) -> (Passes, Outcome) {
    let [long, _, short, _]: [Vec<Does>; 4] = diamond().try_into().unwrap();
    let lanes: Vec<_> = (0..8).map(|i| if takes_long(i) { long.clone() } else { short.clone() }).collect();
    let options = ReplayOptions { measures: vec![Passes::measure(lanes_of_pass)], ..ReplayOptions::default() };
    let specs = [Spec::parse("minpc").unwrap()];
    let outcome = replay(&InMemory::new(&lanes), &specs, &options, None, &|_, _| {}).unwrap().remove(0);
    (*outcome.found::<Passes>().unwrap(), outcome)
}

#[test]
fn the_worked_number_of_passes() {
    let (found, outcome) = passes(|lane| lane < 4, 4);
    assert_eq!((found.taken, found.left_out), (8, 4));
    assert_eq!(found.efficiency(outcome.counts.thread_instructions()), Some(1.0));
    let (found, _) = passes(|lane| lane % 2 == 1, 4);
    assert_eq!((found.taken, found.left_out), (12, 0));
    // Passes of one lane are thread instructions, a pass of the whole warp is a fetch.
    let (found, outcome) = passes(|lane| lane % 3 == 1, 1);
    assert_eq!(found.taken, outcome.counts.thread_instructions());
    let (found, outcome) = passes(|lane| lane % 3 == 1, 8);
    assert_eq!((found.taken, found.left_out), (outcome.counts.fetches(), 0));
}

#[test]
fn groups_at_one_pc_are_not_fetched_for_in_one_cycle() {
    // Each lane alone: lane 1 is one instruction behind lane 0, however many units there are.
    let lanes = [plain(1..11), plain(1..11)];
    assert_eq!(replayed(&lanes, "none", 4).found::<Cycles>().unwrap().cycles, 11);
    assert_eq!(replayed(&lanes, "none", 1).found::<Cycles>().unwrap().cycles, 20);
}

#[test]
fn what_a_lane_does_under_a_lock_comes_after_what_the_lane_before_did() {
    let section = |first: u64| {
        [
            plain([first]),
            comes(Control::Acquire(LockId(0))),
            plain([first + 1, first + 2]),
            comes(Control::Release(LockId(0))),
        ]
        .concat()
    };
    // `minpc` runs all of lane 0 before lane 1 begins: nobody waits, and the lock still orders the two.
    let outcome = replayed(&[section(10), section(20)], "minpc", 2);
    assert_eq!(outcome.found::<Contention>().unwrap().clone().locks[&LockId(0)].waits, 0);
    assert_eq!(outcome.found::<Cycles>().unwrap().cycles, 5);
}

#[test]
fn what_lanes_do_after_a_barrier_comes_after_all_that_they_did_before() {
    let lane = |pcs: std::ops::Range<u64>, after: u64| {
        [plain(pcs), comes(Control::Meet(EpisodeId(0))), plain([after])].concat()
    };
    assert_eq!(cycles(&[lane(10..15, 50), lane(20..21, 60)], 2), 6);
}

#[test]
fn the_worked_number_of_contention() {
    let lock = LockId(3);
    let lane = || {
        [plain([10]), comes(Control::Acquire(lock)), plain([11, 12]), comes(Control::Release(lock)), plain([13])]
            .concat()
    };
    let locks = replayed(&[lane(), lane()], "minpc", 1).found::<Contention>().unwrap().clone().locks;
    let used = LockUse {
        acquisitions: 2,
        waits: 1,
        lanes_that_waited: 1,
        fetches_held: 4,
        fetches_serialised: 2,
        waiting_slots: 2,
        instructions_held: 4,
        warps: 1,
        taken_at: [(LockSite { last: Some(Pc(10)), call: None }, 2)].into(),
    };
    assert_eq!(locks.into_iter().collect::<Vec<_>>(), [(lock, used)]);
}

#[test]
fn readers_share_a_lock_and_a_writer_waits_for_them() {
    let lock = LockId(0);
    let reader = || [comes(Control::AcquireShared(lock)), plain([10, 11]), comes(Control::Release(lock))].concat();
    let writer = [comes(Control::Acquire(lock)), plain([20]), comes(Control::Release(lock))].concat();
    let locks = replayed(&[reader(), reader(), writer], "minpc", 1).found::<Contention>().unwrap().clone().locks;
    let used = &locks[&lock];
    assert_eq!((used.acquisitions, used.waits, used.fetches_held, used.fetches_serialised), (3, 1, 3, 2));
    assert_eq!(used.taken_at, [(LockSite::default(), 3)].into());
}
