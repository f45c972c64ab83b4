//! Lanes regrouped at a place: hand-computed fetches, and a brute force that cuts and sorts lanes on its own.

use std::collections::BTreeSet;

use heuristics::Spec;
use proptest::prelude::*;
use replay::in_memory::{Does, InMemory};
use replay::reorder::Reordered;
use replay::{Batch, Control, Entry, EpisodeId, LaneSource, LockId, Outcome, Prepared, ReplayOptions, SortKey};
use trace_format::{Instruction, Kind, Pc, SpEffect};

/// Where lanes are regrouped.
const PLACE: u64 = 0x20;

fn at() -> BTreeSet<Pc> {
    BTreeSet::from([Pc(PLACE)])
}

/// A lane: so many instructions first, then for each visit a body on one of two ways, so often.
fn lane(before: u64, bodies: &[(bool, u64)]) -> Vec<Does> {
    let mut does: Vec<Does> = (0..before).map(|i| Does::branches(0x10 + i)).collect();
    for (other_way, turns) in bodies {
        does.push(Does::branches(PLACE));
        for _ in 0..*turns {
            does.extend((0..5).map(|i| Does::branches(if *other_way { 0x40 } else { 0x60 } + i)));
        }
    }
    does
}

fn options(size: usize) -> ReplayOptions {
    ReplayOptions { warp_size: Some(size), ..ReplayOptions::default() }
}

fn outcomes(prepared: &Prepared, models: &str, size: usize) -> Vec<Outcome> {
    let specs = Spec::parse_list(models).unwrap();
    let mut outcomes = prepared.replay(&specs, &options(size), None, &|_, _| {}).unwrap();
    outcomes.sort_by_key(|outcome| models.split(',').position(|model| outcome.heuristic.starts_with(model)));
    outcomes
}

fn fetches(outcomes: &[Outcome]) -> Vec<u64> {
    outcomes.iter().map(|outcome| outcome.counts.fetches()).collect()
}

/// The fetches under each model as they are, and regrouped.
fn both(lanes: &[Vec<Does>], key: SortKey, models: &str, size: usize) -> (Vec<u64>, Vec<u64>) {
    let source = InMemory::new(lanes);
    let whole = Prepared::new(&source, true).unwrap();
    let reordered = Reordered::new(&whole, &at(), key).unwrap().expect("lanes visit the place");
    let regrouped = outcomes(&reordered.prepared(&whole).unwrap(), models, size);
    let plain = outcomes(&whole, models, size);
    for (one, other) in plain.iter().zip(&regrouped) {
        assert_eq!(one.counts.thread_instructions(), other.counts.thread_instructions());
    }
    (fetches(&plain), fetches(&regrouped))
}

#[test]
fn two_kinds_of_lanes_that_part_behind_the_place_run_at_full_rate_when_regrouped() {
    // Warps of 2, each with one lane of either kind: 1 common instruction and the place, then 5 and 5 one after the
    // other. Regrouped: 2 warps of 1 before the place; then 2 warps of the place and 5.
    let lanes: Vec<Vec<Does>> = (0..4).map(|i| lane(1, &[(i % 2 == 1, 1)])).collect();
    for key in [SortKey::Path, SortKey::Instructions, SortKey::Trips] {
        let (plain, regrouped) = both(&lanes, key, "ipdom,minpc,tf-stack", 2);
        assert_eq!(plain, [2 * (2 + 10); 3]);
        // All keys but the path are equal here: lanes keep their order, and part as before.
        let of_warp = if key == SortKey::Path { 1 + 5 } else { 1 + 10 };
        assert_eq!(regrouped, [2 + 2 * of_warp; 3], "{key}");
    }
}

#[test]
fn lanes_of_many_trips_come_together_at_each_visit() {
    // Every other lane has 1 turn of 5 at its first visit and 4 at its second, the others 4 and 1. A jump back from
    // 0x64 to 0x60 is a trip; lanes wait for each other at 0x70.
    let of = |i: u64| if i.is_multiple_of(2) { [1, 4] } else { [4, 1] };
    let visit = |turns| [lane(0, &[(false, turns)]), vec![Does::branches(0x70)]].concat();
    let lanes: Vec<Vec<Does>> =
        (0..8).map(|i| of(i).into_iter().fold(lane(3, &[]), |all, turns| [all, visit(turns)].concat())).collect();
    let (plain, regrouped) = both(&lanes, SortKey::Trips, "ipdom,minpc", 4);
    // As they are both warps wait for the longer lanes each time. Regrouped, one warp of each visit is done sooner.
    assert_eq!(plain, [2 * (3 + 2 * (1 + 20 + 1)); 2]);
    assert_eq!(regrouped, [2 * 3 + 2 * (22 + 7); 2]);
}

#[test]
fn what_no_lane_visits_has_no_regrouping() {
    let source = InMemory::new(&[lane(3, &[]), lane(2, &[])]);
    let whole = Prepared::new(&source, true).unwrap();
    assert!(Reordered::new(&whole, &at(), SortKey::Path).unwrap().is_none());
}

#[test]
fn a_phase_goes_on_at_the_lanes_stack_pointer_and_call_level() {
    let runs = |pc, kind, sp| Does::Runs(Instruction { pc: Pc(pc), len: 1, kind, sp, memory: 0 }, Vec::new());
    let add = SpEffect::Add;
    let lane = vec![
        runs(0x10, Kind::Plain, add(-16)),
        runs(0x11, Kind::Call, add(-8)),
        Does::branches(PLACE),
        runs(0x21, Kind::Return, add(8)),
        runs(0x12, Kind::Branch, add(16)),
    ];
    let source = InMemory::new(&[lane]);
    let whole = Prepared::new(&source, true).unwrap();
    let reordered = Reordered::new(&whole, &at(), SortKey::Path).unwrap().unwrap();
    assert_eq!((reordered.lanes(), reordered.visits(), reordered.regroupings()), (2, 1, 1));
    let (mut stream, mut batch) = (reordered.stream(1), Batch::default());
    assert!(stream.next_batch(&mut batch).unwrap());
    assert_eq!(batch.controls, [Control::Sp(-24), Control::Level(2)]);
}

/// Why lanes are not regrouped.
fn refused(lanes: &[Vec<Does>]) -> String {
    let source = InMemory::new(lanes);
    let whole = Prepared::new(&source, true).unwrap();
    Reordered::new(&whole, &at(), SortKey::Path).err().expect("lanes wait for each other").to_string()
}

#[test]
fn lanes_that_would_wait_across_a_visit_are_not_regrouped() {
    let comes = Does::Comes;
    let meet = || comes(Control::Meet(EpisodeId(7)));
    let body = |i: u64| Does::branches(0x40 + i);
    let before = vec![body(0), meet(), Does::branches(PLACE), body(1)];
    let behind = vec![body(0), Does::branches(PLACE), meet(), body(1)];
    let said = refused(&[before.clone(), behind.clone()]);
    assert!(said.contains("lanes 0 and 1 wait for each other at a barrier"), "{said}");
    assert!(said.contains("after 0 visits of the place, the other after 1"), "{said}");
    // All on the same side of the visit: they meet as ever.
    for lanes in [vec![before.clone(), before], vec![behind.clone(), behind]] {
        let source = InMemory::new(&lanes);
        let whole = Prepared::new(&source, true).unwrap();
        let reordered = Reordered::new(&whole, &at(), SortKey::Path).unwrap().unwrap();
        let outcome = &outcomes(&reordered.prepared(&whole).unwrap(), "ipdom", 2)[0];
        assert!(outcome.is_complete() && outcome.counts.fetches() == 3);
    }
    let all = |at_visit: bool| {
        let mut lane = vec![body(0), Does::branches(PLACE), body(1)];
        lane.insert(1 + usize::from(at_visit), comes(Control::MeetAll));
        lane
    };
    assert!(refused(&[all(false), all(true)]).contains("wait for each other"));
    let lock = LockId(3);
    let holds =
        vec![body(0), comes(Control::Acquire(lock)), Does::branches(PLACE), comes(Control::Release(lock)), body(1)];
    let said = refused(&[holds]);
    assert!(said.contains("lane 0 has lock 3 at its visit 1 of the place"), "{said}");
}

/// What a lane runs, in order.
fn ran(source: &dyn LaneSource, lane: usize) -> Vec<Pc> {
    let (mut stream, mut batch, mut all) = (source.stream(lane), Batch::default(), Vec::new());
    while stream.next_batch(&mut batch).unwrap() {
        for code in &batch.codes {
            if let Entry::Segment(id) = code.entry() {
                all.extend(source.segments()[id].instructions.iter().map(|i| i.pc));
            }
        }
    }
    all
}

/// A lane's parts, the first up to its first visit.
fn parts(lane: &[Does]) -> Vec<Vec<Does>> {
    let mut parts = vec![Vec::new()];
    for does in lane {
        if matches!(does, Does::Runs(instruction, _) if instruction.pc == Pc(PLACE)) {
            parts.push(Vec::new());
        }
        parts.last_mut().unwrap().push(does.clone());
    }
    parts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn regrouped_lanes_are_the_launches_that_a_brute_force_cuts_and_sorts(
        of in proptest::collection::vec(
            (0_u64..3, proptest::collection::vec((any::<bool>(), 0_u64..5), 0..4)), 1..14),
        size in 1_usize..5,
    ) {
        prop_assume!(of.iter().any(|(_, bodies)| !bodies.is_empty()));
        let lanes: Vec<Vec<Does>> = of.iter().map(|(before, bodies)| lane(*before, bodies)).collect();
        let (_, regrouped) = both(&lanes, SortKey::Instructions, "minpc", size);
        let cut: Vec<Vec<Vec<Does>>> = lanes.iter().map(|lane| parts(lane)).collect();
        let mut expected = 0;
        let most = cut.iter().map(Vec::len).max().unwrap();
        for visit in 0..most {
            let mut launch: Vec<Vec<Does>> =
                cut.iter().filter_map(|parts| parts.get(visit)).filter(|part| !part.is_empty()).cloned().collect();
            if visit > 0 {
                launch.sort_by_key(Vec::len);
            }
            for warp in launch.chunks(size) {
                let source = InMemory::new(warp);
                expected += fetches(&outcomes(&Prepared::new(&source, true).unwrap(), "minpc", size))[0];
            }
        }
        prop_assert_eq!(regrouped[0], expected);
        // Put together in order, phases are the lanes again, each instruction once.
        let source = InMemory::new(&lanes);
        let whole = Prepared::new(&source, true).unwrap();
        let reordered = Reordered::new(&whole, &at(), SortKey::Path).unwrap().unwrap();
        let mut phases: Vec<Vec<Pc>> = (0..reordered.lanes()).map(|phase| ran(&reordered, phase)).collect();
        let pcs = |part: &Vec<Does>| -> Vec<Pc> {
            part.iter().filter_map(|does| if let Does::Runs(i, _) = does { Some(i.pc) } else { None }).collect()
        };
        let mut own: Vec<Vec<Pc>> = cut.iter().flatten().filter(|part| !part.is_empty()).map(pcs).collect();
        phases.sort();
        own.sort();
        prop_assert_eq!(phases, own);
    }
}
