//! Who shares a warp: each grouping has every lane once, whatever the number of workers, and the oracle is judged by
//! every partition there is.

use std::collections::BTreeSet;

use heuristics::Spec;
use proptest::prelude::*;
use replay::in_memory::{Does, InMemory};
use replay::{Grouping, Outcome, Prepared, ReplayOptions, SortKey};

/// A lane that turns a loop so often, whose body goes the one or the other way.
fn lane(trips: u64, other_way: bool) -> Vec<Does> {
    let mut does = vec![Does::branches(0x10)];
    for _ in 0..trips {
        does.push(Does::branches(0x20));
        does.extend((0..3).map(|i| Does::branches(if other_way { 0x40 } else { 0x60 } + i)));
        does.push(Does::branches(0x80));
    }
    does.push(Does::branches(0x90));
    does
}

fn lanes(of: &[(u64, bool)]) -> Vec<Vec<Does>> {
    of.iter().map(|(trips, other_way)| lane(*trips, *other_way)).collect()
}

fn replayed(lanes: &[Vec<Does>], models: &str, grouping: Grouping, size: usize) -> Vec<Outcome> {
    let source = InMemory::new(lanes);
    let specs: Vec<Spec> = models.split(',').map(|name| Spec::parse(name).unwrap()).collect();
    let options = ReplayOptions { warp_size: Some(size), grouping, ..ReplayOptions::default() };
    Prepared::new(&source, true).unwrap().replay(&specs, &options, None, &|_, _| {}).unwrap()
}

fn fetches(lanes: &[Vec<Does>], model: &str, grouping: Grouping, size: usize) -> u64 {
    replayed(lanes, model, grouping, size)[0].counts.fetches()
}

#[test]
fn sorting_by_trips_puts_equal_lanes_into_one_warp() {
    let all = lanes(&[(9, false), (1, true), (9, false), (1, true), (9, false), (1, true), (9, false), (1, true)]);
    let by = |key| fetches(&all, "ipdom", Grouping::Sorted { key }, 4);
    let alone = |trips| fetches(&[lane(trips, false)], "ipdom", Grouping::Consecutive, 1);
    for key in [SortKey::Instructions, SortKey::Trips, SortKey::Path] {
        assert_eq!(by(key), alone(9) + alone(1), "{key}");
    }
    assert!(fetches(&all, "ipdom", Grouping::Consecutive, 4) > by(SortKey::Path));
    assert_eq!(fetches(&all, "ipdom", Grouping::Strided { step: 2 }, 4), by(SortKey::Path));
    // Equal trips on two paths: only the path tells them apart.
    let paths = lanes(&[(5, true), (5, false), (5, true), (5, false)]);
    let by = |key| fetches(&paths, "ipdom", Grouping::Sorted { key }, 2);
    assert_eq!(by(SortKey::Path), 2 * alone(5));
    assert!(by(SortKey::Trips) > by(SortKey::Path));
}

/// The fewest fetches of any way to put all of these lanes into so few warps, by trying each.
fn brute_force(lanes: &[Vec<Does>], model: &str, size: usize) -> u64 {
    fn go(left: &[usize], warps: &mut Vec<Vec<usize>>, most: usize, size: usize, see: &mut dyn FnMut(&[Vec<usize>])) {
        let Some((first, rest)) = left.split_first() else { return see(warps) };
        for index in 0..warps.len() {
            if warps[index].len() < size {
                warps[index].push(*first);
                go(rest, warps, most, size, see);
                warps[index].pop();
            }
        }
        if warps.len() < most {
            warps.push(vec![*first]);
            go(rest, warps, most, size, see);
            warps.pop();
        }
    }
    let mut known = std::collections::HashMap::new();
    let mut least = u64::MAX;
    let all: Vec<usize> = (0..lanes.len()).collect();
    go(&all, &mut Vec::new(), lanes.len().div_ceil(size), size, &mut |warps| {
        let of_warp = |warp: &Vec<usize>| -> u64 {
            let own: Vec<Vec<Does>> = warp.iter().map(|lane| lanes[*lane].clone()).collect();
            *known.entry(warp.clone()).or_insert_with(|| fetches(&own, model, Grouping::Consecutive, size))
        };
        least = least.min(warps.iter().map(of_warp).sum());
    });
    least
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn the_oracle_of_few_lanes_is_the_best_of_all_partitions(
        of in proptest::collection::vec((0_u64..6, any::<bool>()), 2..8),
        size in 2_usize..4,
    ) {
        let lanes = lanes(&of);
        for model in ["ipdom", "minpc", "tf-stack"] {
            let found = fetches(&lanes, model, Grouping::Oracle, size);
            prop_assert_eq!(found, brute_force(&lanes, model, size), "{}", model);
        }
    }

    #[test]
    fn nothing_beats_the_bound_and_no_grouping_the_oracle(
        of in proptest::collection::vec((0_u64..12, any::<bool>()), 11..40),
        size in 2_usize..6,
    ) {
        let lanes = lanes(&of);
        let source = InMemory::new(&lanes);
        let bound = Prepared::new(&source, false).unwrap().least_of_any_grouping(Some(size)).unwrap();
        for model in ["ipdom", "minpc"] {
            let oracle = fetches(&lanes, model, Grouping::Oracle, size);
            prop_assert!(bound <= oracle);
            for grouping in Grouping::ALL {
                prop_assert!(oracle <= fetches(&lanes, model, grouping, size), "{}", grouping);
            }
        }
        // Of few lanes the bound lies below every partition, too.
        let few = &lanes[..7];
        let source = InMemory::new(few);
        let bound = Prepared::new(&source, false).unwrap().least_of_any_grouping(Some(size)).unwrap();
        prop_assert!(bound <= brute_force(few, "ipdom", size));
    }
}

#[test]
fn the_bound_is_reached_where_lanes_of_a_kind_fill_warps() {
    let all = lanes(&[(5, false), (1, false), (5, false), (1, false)]);
    let bound = Prepared::new(&InMemory::new(&all), false).unwrap().least_of_any_grouping(Some(2)).unwrap();
    assert_eq!(bound, fetches(&all, "ipdom", Grouping::Oracle, 2));
}

#[test]
fn every_grouping_has_all_lanes_and_one_result_with_one_worker_and_with_three() {
    let of: Vec<(u64, bool)> = (0..75_u64).map(|i| (i * 7 % 13, i % 3 == 0)).collect();
    let all = lanes(&of);
    let models = "ipdom,minpc,barrier";
    for grouping in Grouping::ALL {
        let run = |workers: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap();
            let outcomes = pool.install(|| replayed(&all, models, grouping, 8));
            let seen: Vec<_> = outcomes.iter().map(|o| (o.counts.fetches(), o.warp_fetches.clone(), o.warps)).collect();
            let instructions: BTreeSet<u64> = outcomes.iter().map(|o| o.counts.thread_instructions()).collect();
            (seen, instructions)
        };
        let one = run(1);
        assert_eq!(one, run(3), "{grouping}");
        assert_eq!(one.1.len(), 1, "{grouping}");
        assert!(one.0.iter().all(|(.., warps)| *warps == 10), "{grouping}");
    }
    let seeds = [1, 2].map(|seed| fetches(&all, "ipdom", Grouping::Random { seed }, 8));
    assert_ne!(seeds[0], seeds[1], "another seed, another shuffle");
}
