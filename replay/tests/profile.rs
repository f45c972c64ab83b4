//! Edges, active lanes and lane maps of small programs, against numbers that can be counted by hand and against the
//! replay's own counts.

use heuristics::Spec;
use replay::in_memory::{Does, InMemory};
use replay::metrics::{ActiveLanes, Edges, Kept, LaneMapPlan, LaneMaps};
use replay::{LaneSource, Outcome, ReplayOptions, replay};
use trace_format::{Instruction, Kind, Pc, SpEffect};

fn at(pc: u64, kind: Kind) -> Does {
    Does::Runs(Instruction { pc: Pc(pc), len: 1, kind, sp: SpEffect::Add(0), memory: 0 }, Vec::new())
}

/// Of three lanes in four seats two run 10 20 21 50 and one runs 10 30 31 32 50.
fn two_arms() -> InMemory {
    let arm = |pcs: &[u64]| pcs.iter().map(|pc| at(*pc, Kind::Plain)).collect::<Vec<_>>();
    let taken = [vec![at(10, Kind::Branch)], arm(&[20]), vec![at(21, Kind::Jump)], arm(&[50])].concat();
    let not = [vec![at(10, Kind::Branch)], arm(&[30, 31, 32, 50])].concat();
    InMemory::new(&[taken.clone(), taken, not])
}

fn replayed(model: &str) -> (InMemory, Outcome) {
    let source = two_arms();
    let plain = ReplayOptions { warp_size: Some(4), ..ReplayOptions::default() };
    let specs = [Spec::parse(model).unwrap()];
    let fetches = replay(&source, &specs, &plain, None, &|_, _| {}).unwrap()[0].warp_fetches.clone();
    let plan =
        LaneMapPlan { classes: vec![7; source.segments().places()], fetches: fetches.into_iter().map(Some).collect() };
    let options =
        ReplayOptions { measures: vec![Edges::measure(), ActiveLanes::measure(), LaneMaps::measure(plan)], ..plain };
    let outcome = replay(&source, &specs, &options, None, &|_, _| {}).unwrap().remove(0);
    (source, outcome)
}

#[test]
fn edges_of_two_arms_have_their_lanes_and_their_lost_slots() {
    let (source, outcome) = replayed("minpc");
    let mut start = vec![0; source.segments().places()];
    source.segments().iter().for_each(|(_, s)| start[s.place.0 as usize] = s.start().0);
    let pc = |place: heuristics::PlaceId| start[place.0 as usize];
    let edges = outcome.found::<Edges>().unwrap().clone();
    let found: Vec<(u64, u64, u64, u64, u64)> =
        edges.all.iter().map(|((from, to), c)| (from.map_or(0, pc), pc(*to), c.times, c.crossings, c.lost)).collect();
    let mut found = found;
    found.sort_unstable();
    // 50 is fetched once: its slot of the empty seat is charged to the way of lane 0.
    assert_eq!(found, [(0, 10, 1, 3, 1), (10, 20, 1, 2, 4), (10, 30, 1, 1, 9), (20, 50, 1, 2, 1), (30, 50, 1, 1, 0)]);
}

#[test]
fn edges_and_active_lanes_add_up_to_the_replay_s_counts() {
    for model in Spec::parse_list("all").unwrap() {
        let (_, outcome) = replayed(&model.to_string());
        let lost: u64 = outcome.found::<Edges>().unwrap().all.iter().map(|(_, c)| c.lost).sum();
        assert_eq!(lost, outcome.lost_slots(), "{model}");
        let mut active = vec![0; outcome.counts.active.len()];
        for (_, counts) in &outcome.found::<ActiveLanes>().unwrap().all {
            active.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
        }
        assert_eq!(active, outcome.counts.active, "{model}");
    }
}

#[test]
fn a_lane_map_holds_every_fetch_and_thread_instruction() {
    for model in Spec::parse_list("all").unwrap() {
        let (_, outcome) = replayed(&model.to_string());
        let map = &outcome.found::<LaneMaps>().unwrap().0[0];
        assert_eq!(map.fetches, outcome.counts.fetches(), "{model}");
        for level in &map.levels {
            let active: u64 = level.cells.iter().map(|c| c.active).sum();
            assert_eq!(active, outcome.counts.thread_instructions(), "{model}");
        }
        assert_eq!(map.windows[0].kept, Kept::Whole);
        let (mut fetches, mut instructions) = (0, 0);
        for stretch in &map.windows[0].stretches {
            fetches += u64::from(stretch.count);
            instructions += u64::from(stretch.count) * stretch.lanes.len() as u64;
        }
        assert_eq!((fetches, instructions), (map.fetches, outcome.counts.thread_instructions()), "{model}");
    }
}
