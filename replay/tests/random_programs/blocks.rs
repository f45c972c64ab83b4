//! Models that run blocks of warps: with one warp in a block they are models of single warps, with more they obey what
//! theory says.

use std::cmp::Reverse;

use heuristics::Spec;
use proptest::prelude::*;
use replay::in_memory::Does;
use replay::metrics::{Checker, ScheduleHashes};
use replay::{Outcome, ReplayOptions, replay};

use crate::programs::{does, lanes_of, statements, without_locks};

fn fetches(outcomes: &[Outcome]) -> Vec<u64> {
    outcomes.iter().map(|o| o.counts.fetches()).collect()
}

/// A lane at a place, and when it came there.
struct Standing {
    pcs: Vec<u64>,
    at: usize,
    came: u64,
}

/// The fetches of one warp whose lanes have a pc each, of which the policy picks one at each instruction; all lanes
/// there run.
fn per_pc(lanes: Vec<Vec<u64>>, policy: &str) -> u64 {
    let mut lanes: Vec<Standing> = lanes.into_iter().map(|pcs| Standing { pcs, at: 0, came: 0 }).collect();
    let (mut fetches, mut last) = (0, None);
    loop {
        let live: Vec<&Standing> = lanes.iter().filter(|l| l.at < l.pcs.len()).collect();
        let count = |pc: u64| live.iter().filter(|l| l.pcs[l.at] == pc).count();
        let pcs = live.iter().map(|l| l.pcs[l.at]);
        let picked = match policy {
            "majority" => last.filter(|pc| count(*pc) > 0).or_else(|| pcs.min_by_key(|pc| (Reverse(count(*pc)), *pc))),
            "minority" => pcs.min_by_key(|pc| (count(*pc), *pc)),
            "time" => live.iter().min_by_key(|l| l.came).map(|l| l.pcs[l.at]),
            _ => pcs.min(),
        };
        let Some(pc) = picked else { return fetches };
        fetches += 1;
        last = Some(pc);
        for lane in lanes.iter_mut().filter(|l| l.pcs.get(l.at) == Some(&pc)) {
            (lane.at, lane.came) = (lane.at + 1, fetches);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_block_of_one_warp_is_a_warp(program in statements(4), lanes in 1u64..9) {
        let specs = Spec::parse_list("minpc,dwf:policy=pc,ipdom,tbc,lwm").unwrap();
        let options = ReplayOptions { measures: vec![ScheduleHashes::measure()], ..ReplayOptions::default() };
        let outcomes = replay(&lanes_of(&program, lanes), &specs, &options, None, &|_, _| {}).unwrap();
        prop_assert_eq!(outcomes[0].found::<ScheduleHashes>(), outcomes[1].found::<ScheduleHashes>());
        for block in &outcomes[3..] {
            prop_assert_eq!(block.is_complete(), outcomes[2].is_complete());
            prop_assert_eq!(outcomes[2].found::<ScheduleHashes>(), block.found::<ScheduleHashes>());
            prop_assert_eq!(outcomes[2].lower_bound, block.lower_bound);
        }
    }

    #[test]
    fn formation_in_one_warp_is_a_scheduler_of_pcs(program in statements(4), lanes in 1u64..9) {
        let does = does(&without_locks(&program), lanes);
        let pc = |does: &Does| match does {
            Does::Runs(instruction, _) => Some(instruction.pc.0),
            Does::Comes(_) => None,
        };
        // Barriers are no part of the scheduler of pcs.
        let does: Vec<Vec<Does>> =
            does.iter().map(|l| l.iter().filter(|d| pc(d).is_some()).cloned().collect()).collect();
        let pcs: Vec<Vec<u64>> = does.iter().map(|l| l.iter().filter_map(pc).collect()).collect();
        for policy in ["majority", "minority", "time", "pc"] {
            let spec = [Spec::parse(&format!("dwf:policy={policy}")).unwrap()];
            let source = replay::in_memory::InMemory::new(&does);
            let outcomes = replay(&source, &spec, &ReplayOptions::default(), None, &|_, _| {}).unwrap();
            prop_assert_eq!(fetches(&outcomes)[0], per_pc(pcs.clone(), policy), "{}", policy);
        }
    }

    /// The lanes of these programs end together. Then a compacted side has no more warps than lanes of it had before,
    /// and packing again at each instruction has no more fetches than packing at branches.
    #[test]
    fn packing_more_often_needs_no_more_fetches(
        program in statements(4), lanes in 1u64..17, size in 1usize..6, warps in 1usize..5
    ) {
        let source = lanes_of(&without_locks(&program), lanes);
        let specs = Spec::parse_list("lwm,tbc,ipdom").unwrap();
        let options = ReplayOptions { measures: vec![Checker::measure()], warp_size: Some(size), warps_per_block: Some(warps), ..ReplayOptions::default()
        };
        let outcomes = replay(&source, &specs, &options, None, &|_, _| {}).unwrap();
        let fetches = fetches(&outcomes);
        prop_assert!(fetches.is_sorted(), "{fetches:?}");
        prop_assert!(fetches[0] >= outcomes[0].lower_bound && outcomes[0].lower_bound <= outcomes[2].lower_bound);
    }

    #[test]
    fn lanes_of_one_home_never_share(program in statements(3), lanes in 1u64..9) {
        // With one seat in a warp nothing can be shared, however many warps are in the block.
        let specs = Spec::parse_list("dwf,tbc,lwm").unwrap();
        let options = ReplayOptions { measures: vec![Checker::measure()], warp_size: Some(1), ..ReplayOptions::default() };
        let source = lanes_of(&without_locks(&program), lanes);
        for outcome in replay(&source, &specs, &options, None, &|_, _| {}).unwrap() {
            prop_assert_eq!(outcome.warps_per_block as u64, lanes);
            prop_assert_eq!(outcome.counts.fetches(), outcome.upper_bound);
            prop_assert_eq!(outcome.lower_bound, outcome.upper_bound);
        }
    }
}

#[test]
fn a_block_has_no_more_lanes_than_a_mask() {
    let specs = [Spec::parse("tbc").unwrap()];
    let source = lanes_of(&[], 4);
    let blocks =
        |warps| ReplayOptions { warp_size: Some(100), warps_per_block: Some(warps), ..ReplayOptions::default() };
    assert!(replay(&source, &specs, &blocks(2), None, &|_, _| {}).is_ok());
    let error = replay(&source, &specs, &blocks(3), None, &|_, _| {}).unwrap_err().to_string();
    assert!(error.contains("1 to 2 such warps"), "{error}");
}
