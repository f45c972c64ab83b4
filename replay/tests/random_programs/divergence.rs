//! Divergences counted again, by brute force: from the written schedule alone, fetch by fetch, each fetch's company by
//! itself.
//!
//! For a fetch of two lanes or more: the next fetch that any of them runs is looked for. Where all of them that are
//! still live run it, nothing happens; else they have diverged, until a fetch that all of them run that are live then.
//! A lane is live while instructions of it are left.

use heuristics::{REGISTRY, Spec};
use proptest::prelude::*;
use replay::in_memory::{Does, InMemory};
use replay::metrics::Divergence;
use replay::{Outcome, ReplayOptions, ScheduleFile, replay};
use trace_format::{Instruction, Kind, Pc, SpEffect};

use crate::programs::{does, statements};

/// A fetch: its active lanes, and before it the live lanes and the pcs at which those stand.
struct Fetch {
    active: u64,
    live: u64,
    pcs: usize,
}

/// What a schedule does to lanes that run these instructions.
fn fetches(schedule: &str, lanes: &[Vec<u64>]) -> Vec<Fetch> {
    let mut at = vec![0; lanes.len()];
    let fetch = |line: &str| {
        let (pc, mask) = line.split_once(' ').expect("a line is a pc and a mask");
        let pc = u64::from_str_radix(pc, 16).unwrap();
        let active = u64::from_str_radix(mask, 2).unwrap();
        let live = (0..lanes.len()).filter(|l| at[*l] < lanes[*l].len());
        let mut pcs: Vec<u64> = live.clone().map(|l| lanes[l][at[l]]).collect();
        pcs.sort_unstable();
        pcs.dedup();
        let live = live.fold(0, |live, l| live | 1 << l);
        for lane in (0..lanes.len()).filter(|l| active & 1 << l != 0) {
            assert_eq!(lanes[lane][at[lane]], pc, "an active lane runs its next instruction");
            at[lane] += 1;
        }
        Fetch { active, live, pcs: pcs.len() }
    };
    schedule.lines().map(fetch).collect()
}

/// The divergences of a schedule, by their definition.
fn by_definition(all: &[Fetch]) -> Divergence {
    let mut found = Divergence { fetches: all.len() as u64, ..Divergence::default() };
    for (at, company) in all.iter().enumerate() {
        found.pcs += company.pcs as u64;
        found.most_pcs = found.most_pcs.max(company.pcs as u64);
        found.lone_fetches += u64::from(company.active.count_ones() == 1 && company.live.count_ones() > 1);
        let later = &all[at + 1..];
        let parts = later.iter().find(|f| f.active & company.active != 0).is_some_and(|f| {
            let left = company.active & f.live;
            left & f.active != left
        });
        if !parts {
            continue;
        }
        let ends = |f: &Fetch| {
            let left = company.active & f.live;
            left.count_ones() < 2 || left & f.active == left
        };
        let end = later.iter().position(ends).filter(|e| (company.active & later[*e].live).count_ones() >= 2);
        let Some(length) = end else {
            found.never_joined += 1;
            continue;
        };
        let left = company.active & later[length].live;
        let ran = |lane: &u32| later[..length].iter().filter(|f| f.active & 1 << lane != 0).count() as u64;
        let ran: Vec<u64> = (0..64u32).filter(|l| left & 1 << l != 0).map(|l| ran(&l)).collect();
        found.joined += 1;
        found.length += length as u64;
        found.longest = found.longest.max(length as u64);
        let bucket = length.ilog2() as usize;
        found.by_length.resize(found.by_length.len().max(bucket + 1), 0);
        found.by_length[bucket] += 1;
        found.slots += ran.len() as u64 * ran.iter().max().unwrap();
        found.instructions += ran.iter().sum::<u64>();
    }
    found
}

/// The instructions that each lane runs.
fn pcs_of(does: &[Vec<Does>]) -> Vec<Vec<u64>> {
    let pc = |does: &Does| match does {
        Does::Runs(instruction, _) => Some(instruction.pc.0),
        Does::Comes(_) => None,
    };
    does.iter().map(|lane| lane.iter().filter_map(pc).collect()).collect()
}

/// What a model's replay measures, and what its schedule says by the definition; none where it deadlocks.
fn measured_and_defined(does: &[Vec<Does>], spec: &Spec) -> Option<(Divergence, Divergence)> {
    let options = ReplayOptions { measures: vec![Divergence::measure()], ..ReplayOptions::default() };
    let mut written = Vec::new();
    let file = ScheduleFile { out: &mut written, path: "in memory".as_ref() };
    let source = InMemory::new(does);
    let outcomes = replay(&source, std::slice::from_ref(spec), &options, Some(file), &|_, _| {}).unwrap();
    let outcome: &Outcome = outcomes.first().filter(|o| o.is_complete())?;
    let schedule = String::from_utf8(written).unwrap();
    let (_heading, schedule) = schedule.split_once('\n').expect("a heading per warp");
    Some((outcome.found::<Divergence>().unwrap().clone(), by_definition(&fetches(schedule, &pcs_of(does)))))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn divergences_are_those_of_the_definition(program in statements(4), lanes in 2u64..9) {
        let does = does(&program, lanes);
        for entry in REGISTRY {
            let spec = Spec::parse(entry.name).unwrap();
            if let Some((measured, defined)) = measured_and_defined(&does, &spec) {
                prop_assert_eq!(measured, defined, "{}", spec);
            }
        }
    }
}

fn runs(pc: u64, kind: Kind) -> Does {
    Does::Runs(Instruction { pc: Pc(pc), len: 1, kind, sp: SpEffect::Add(0), memory: 0 }, Vec::new())
}

/// Lanes 0 to 2 part: 0 and 1 take one arm, 2 the other, in which it ends. Lane 3, which was never with them, is the
/// first to run without lane 2. Yet the divergence of 0 to 2 ends with the next fetch that 0 and 1 share, all that are
/// left of it: 4 fetches lie between, in turns 3, 0 with 1, 2 and 3.
#[test]
fn a_lane_that_runs_between_the_end_of_another_and_a_join_hides_no_join() {
    let arm = || [5, 10, 11, 12].map(|pc| runs(pc, if pc == 5 { Kind::Branch } else { Kind::Plain })).to_vec();
    let short = vec![runs(5, Kind::Branch), runs(20, Kind::Plain)];
    let alone = (30..34).map(|pc| runs(pc, Kind::Jump)).collect();
    let lanes = [arm(), arm(), short, alone];
    let spec = Spec::parse("round-robin-eq").unwrap();
    let (measured, defined) = measured_and_defined(&lanes, &spec).unwrap();
    assert_eq!(measured, defined);
    assert_eq!((measured.joined, measured.length), (1, 4));
}
