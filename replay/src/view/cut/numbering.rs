//! Numbers of iterations that a runtime dealt out, read off the addresses that they accessed: the i-th mostly writes or
//! reads the i-th of something.

use heuristics::SegmentId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Numbered;
use super::pieces::Access;

/// Puts the lanes of each launch, sorted by launch, thread and number, into the order of the addresses that one of
/// their instructions accessed. It is one that all of them ran, at an address of its own each, and that moves one way
/// on each thread. False, with nothing changed, where a launch has none.
pub(super) fn by_addresses(all: &mut [Numbered], accesses: &[Vec<Access>]) -> bool {
    // By thread and lane: where its accesses begin.
    let begins: Vec<FxHashMap<u32, usize>> = accesses.iter().map(|of| first_of_each(of)).collect();
    let of_lane = |lane: &Numbered| {
        let of = &accesses[lane.2 as usize];
        let number = lane.3;
        let begin = begins[lane.2 as usize].get(&number).copied().unwrap_or(of.len());
        of[begin..].iter().take_while(move |access| access.lane == number)
    };
    let mut orders: Vec<Vec<u64>> = Vec::new();
    for launch in all.chunk_by(|a, b| a.0 == b.0) {
        let mut candidates = of_lane(&launch[0]).map(|access| access.by);
        match candidates.find_map(|by| keys(launch, by, &of_lane)) {
            Some(keys) => orders.push(keys),
            None => return false,
        }
    }
    let mut left = all;
    for keys in orders {
        let (launch, rest) = left.split_at_mut(keys.len());
        left = rest;
        let mut with_keys: Vec<(u64, Numbered)> = keys.into_iter().zip(launch.iter().copied()).collect();
        with_keys.sort_unstable_by_key(|(key, _)| *key);
        launch.iter_mut().zip(with_keys).for_each(|(lane, (_, sorted))| *lane = sorted);
    }
    true
}

/// By lane of a launch: what to sort it by; none where this access does not tell.
fn keys<'a, A: Iterator<Item = &'a Access>>(
    launch: &[Numbered],
    by: (SegmentId, u32),
    of_lane: &impl Fn(&Numbered) -> A,
) -> Option<Vec<u64>> {
    let address = |lane: &Numbered| of_lane(lane).find(|access| access.by == by).map(|access| access.address);
    let addresses: Vec<u64> = launch.iter().map(address).collect::<Option<_>>()?;
    let distinct: FxHashSet<u64> = addresses.iter().copied().collect();
    if distinct.len() < addresses.len() {
        return None;
    }
    let pairs = || launch.windows(2).zip(addresses.windows(2)).filter(|(lanes, _)| lanes[0].2 == lanes[1].2);
    let (rises, falls) = (pairs().all(|(_, of)| of[0] < of[1]), pairs().all(|(_, of)| of[0] > of[1]));
    match (rises, falls) {
        (true, _) => Some(addresses),
        (_, true) => Some(addresses.into_iter().map(|address| u64::MAX - address).collect()),
        _ => None,
    }
}

fn first_of_each(accesses: &[Access]) -> FxHashMap<u32, usize> {
    let mut first = FxHashMap::default();
    for (at, access) in accesses.iter().enumerate() {
        first.entry(access.lane).or_insert(at);
    }
    first
}
