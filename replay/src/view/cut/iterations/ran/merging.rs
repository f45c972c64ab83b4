//! What it would cost to merge an inner loop and the one around it into one loop, by trip counts.
//!
//! Lanes that are done with the inner loop wait there for the lane with the most trips, in each turn of the outer loop.
//! As one loop (`linearize:merge-loops=yes`), each turn of which is one of the inner loop, they go on with their next
//! turn of the outer one. Then the inner loop is issued as often as the lane with the most trips in all needs: the
//! greatest of sums instead of the sum of the greatest. The rest of the outer loop is issued whenever any lane comes
//! to it, which is more often than before; and each turn passes guards.
//!
//! Example: two lanes take 10 and 15 trips in one turn, 15 and 10 in the next. Apart that is 15 + 15 = 30 trips and 2
//! turns; merged it is 25 trips, and turns of the outer loop begin at trip 0, 10 and 15: 3.
//!
//! Source: Anantpur and Govindarajan, *Taming control divergence in GPUs through control flow linearization*, CC 2014,
//! sections 2.3 and 5.2.

use std::collections::BTreeSet;

use trace_format::Pc;

/// What guards take in each turn of merged loops, in fetches. On x86-64, `trip_counts`: whose turn it is is set,
/// compared at the head and at the end (`movl`, `test` and `jne`, `cmp` and `jne`), the inner loop's count is compared
/// with a bound that can no longer be counted down to 0 (`cmp`), a value is moved and a constant made again. Measured
/// with trips of 15 to 143 instructions (results/2026-11-23-linearization-paper): 32 fetches in all are not counted.
pub const GUARDS: u64 = 8;

/// A lane's turns of one outer loop that are remembered; of lanes with more, nothing is said.
const MOST_TURNS: usize = 1 << 22;

/// What merging two loops would change, summed over warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merging {
    /// The outer loop's header.
    pub outer: Pc,
    /// How often the inner loop's body is issued while lanes wait behind it.
    pub trips_apart: u64,
    /// How often in one loop: the turns of that.
    pub trips_merged: u64,
    /// How often the inner loop's body is issued where lanes wait, and the turns of the outer loop that the warp's
    /// lanes have between them are dealt out again, those with the most trips first, in turn to each lane.
    pub trips_sorted: u64,
    /// The fetches that this saves.
    pub sorting_gain: u64,
    /// How often the rest of the outer loop's body is issued while lanes wait.
    pub turns_apart: u64,
    /// How often in one loop.
    pub turns_merged: u64,
    /// Fetches that are saved, less those of guards. Below 0 where it does not pay.
    pub gain: i64,
}

/// A lane's trips of an inner loop: by entry into the outer loop, by turn of that.
#[derive(Clone, Debug, Default)]
pub(in crate::view::cut) struct Trips {
    entries: Vec<Vec<u32>>,
    turns: usize,
    /// The outer loop was entered again before it was left, by recursion; or there were too many turns.
    unknown: bool,
}

impl Trips {
    /// Whether the lane reached the outer loop.
    pub fn any(&self) -> bool {
        !self.entries.is_empty() || self.unknown
    }

    /// The lane reaches the outer loop; `again`, while it is in it.
    pub fn enter(&mut self, again: bool) {
        self.unknown |= again;
        self.entries.push(Vec::new());
    }

    /// It begins a turn of that.
    pub fn turn(&mut self) {
        self.turns += 1;
        self.unknown |= self.turns > MOST_TURNS;
        if let Some(turns) = self.entries.last_mut().filter(|_| !self.unknown) {
            turns.push(0);
        }
    }

    /// It begins a turn of the inner loop.
    pub fn trip(&mut self) {
        if let Some(trips) = self.entries.last_mut().and_then(|turns| turns.last_mut()) {
            *trips += 1;
        }
    }
}

impl Merging {
    /// By the trips of each warp's lanes; `inside` and `around` are instructions and turns of both loops. None where
    /// no lane reached the inner loop in more than one turn of the outer one, or trips are unknown.
    pub(super) fn of(warps: &[Vec<&Trips>], outer: Pc, inside: (u64, u64), around: (u64, u64)) -> Option<Merging> {
        let lanes = || warps.iter().flatten();
        let nested = |lane: &&Trips| lane.entries.iter().any(|turns| turns.len() > 1);
        if lanes().any(|lane| lane.unknown) || !lanes().any(nested) || inside.1 == 0 {
            return None;
        }
        let mut sum = Merging {
            outer,
            trips_apart: 0,
            trips_merged: 0,
            trips_sorted: 0,
            sorting_gain: 0,
            turns_apart: 0,
            turns_merged: 0,
            gain: 0,
        };
        let mut turns_sorted = 0;
        for warp in warps {
            for entry in 0..warp.iter().map(|lane| lane.entries.len()).max().unwrap_or(0) {
                let lanes: Vec<&[u32]> =
                    warp.iter().filter_map(|lane| lane.entries.get(entry)).map(Vec::as_slice).collect();
                let most = lanes.iter().map(|turns| turns.len()).max().unwrap_or(0);
                let longest = |turn: usize| lanes.iter().filter_map(|turns| turns.get(turn)).max();
                sum.trips_apart += (0..most).filter_map(longest).map(|&trips| u64::from(trips)).sum::<u64>();
                sum.turns_apart += most as u64;
                let mut all: Vec<u32> = lanes.iter().flat_map(|turns| turns.iter().copied()).collect();
                all.sort_unstable_by_key(|trips| std::cmp::Reverse(*trips));
                let dealt = all.iter().step_by(warp.len().max(1));
                turns_sorted += dealt.len() as u64;
                sum.trips_sorted += dealt.map(|&trips| u64::from(trips)).sum::<u64>();
                let mut begin: BTreeSet<u64> = BTreeSet::new();
                let mut merged = 0;
                for turns in &lanes {
                    let mut at = 0;
                    for &trips in *turns {
                        begin.insert(at);
                        // A turn without a trip goes by the inner loop's guard.
                        at += u64::from(trips.max(1));
                    }
                    merged = merged.max(at);
                }
                sum.trips_merged += merged;
                sum.turns_merged += begin.len() as u64;
            }
        }
        let [trip, rest] = [(inside.0, inside.1), (around.0.saturating_sub(inside.0), around.1)]
            .map(|(instructions, turns)| instructions as f64 / turns.max(1) as f64);
        let less = |apart: u64, merged: u64, each: f64| (apart as f64 - merged as f64) * each;
        let saved = less(sum.trips_apart, sum.trips_merged, trip) + less(sum.turns_apart, sum.turns_merged, rest);
        let sorted = less(sum.trips_apart, sum.trips_sorted, trip) + less(sum.turns_apart, turns_sorted, rest);
        sum.sorting_gain = sorted.max(0.0).round() as u64;
        sum.gain = (saved - (GUARDS * sum.trips_merged) as f64).round() as i64;
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(entries: &[&[u32]]) -> Trips {
        let mut lane = Trips::default();
        for turns in entries {
            lane.enter(false);
            for &trips in *turns {
                lane.turn();
                (0..trips).for_each(|_| lane.trip());
            }
        }
        lane
    }

    fn merging(warps: &[Vec<Trips>], trip: u64, rest: u64) -> Option<Merging> {
        let warps: Vec<Vec<&Trips>> = warps.iter().map(|warp| warp.iter().collect()).collect();
        Merging::of(&warps, Pc(0), (trip, 1), (trip + rest, 1))
    }

    #[test]
    fn the_papers_two_lanes_take_25_trips_instead_of_30() {
        let warp = vec![lane(&[&[10, 15]]), lane(&[&[15, 10]])];
        let of = merging(std::slice::from_ref(&warp), 100, 40).unwrap();
        assert_eq!((of.trips_apart, of.trips_merged, of.turns_apart, of.turns_merged), (30, 25, 2, 3));
        assert_eq!(of.gain, 5 * 100 - 40 - 25 * GUARDS as i64);
        // Dealt out by length both have 15 trips, then both 10.
        assert_eq!((of.trips_sorted, of.sorting_gain), (25, 5 * 100));
        // A short inner loop does not pay for the guards, and each warp counts for itself.
        assert!(merging(std::slice::from_ref(&warp), 10, 0).unwrap().gain < 0);
        assert_eq!(merging(&[warp.clone(), warp], 100, 40).unwrap().gain, 2 * of.gain);
    }

    #[test]
    fn lanes_that_agree_gain_nothing_and_entries_are_apart() {
        let agree = vec![lane(&[&[4, 7], &[3]]), lane(&[&[4, 7], &[3]])];
        let of = merging(&[agree], 50, 20).unwrap();
        assert_eq!((of.trips_apart, of.trips_merged, of.turns_apart, of.turns_merged), (14, 14, 3, 3));
        assert_eq!(of.gain, -14 * GUARDS as i64);
        // What levels out over entries of the outer loop does not, within one.
        let entries = vec![lane(&[&[1, 1], &[9, 1]]), lane(&[&[9, 1], &[1, 1]])];
        let of = merging(&[entries], 50, 20).unwrap();
        assert_eq!((of.trips_apart, of.trips_merged), (20, 20));
    }

    #[test]
    fn recursion_and_loops_that_turn_once_say_nothing() {
        let mut again = lane(&[&[2, 3]]);
        again.enter(true);
        assert_eq!(merging(&[vec![again]], 50, 20), None);
        assert_eq!(merging(&[vec![lane(&[&[2], &[3]])]], 50, 20), None);
    }
}
