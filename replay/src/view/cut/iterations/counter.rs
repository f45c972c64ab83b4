//! How often loops turned in the streams of lanes.

use heuristics::SegmentId;
use rustc_hash::FxHashMap;
use trace_format::Pc;

use super::loops::{LoopPlan, LoopRan};
use super::merging::{Merging, Trips};
use crate::lanes::brief::Brief;
use crate::{Batch, Control, Entry};

/// A lane's trips, by loop; only of those that it reached.
pub(crate) type TripsOfLane = Vec<(usize, Trips)>;

/// Counts turns of all loops in the streams of lanes.
#[derive(Clone)]
pub(crate) struct LoopCounter {
    pub(super) plan: LoopPlan,
    pub(super) found: Vec<LoopRan>,
    /// By loop: the loop in it, where the two could be one.
    pub(super) inside: Vec<Option<u32>>,
    /// By loop in another: its trips in turns of that one, of the lane.
    pub(super) trips: Vec<Trips>,
    pub(super) briefs: Vec<Brief>,
    /// The loops that the lane is in, the innermost last, with the call level of each.
    pub(super) active: Vec<(u32, u32)>,
    pub(super) level: u32,
}

impl LoopCounter {
    /// The next piece of a lane.
    pub fn see(&mut self, batch: &Batch) {
        for code in &batch.codes {
            match code.entry() {
                Entry::Control(index) => match batch.controls[index] {
                    Control::Level(level) => self.level = level,
                    Control::Begin { .. } => {
                        self.active.clear();
                        self.level = 1;
                    }
                    _ => {}
                },
                Entry::Segment(id) => self.segment(id),
            }
        }
    }

    fn segment(&mut self, id: SegmentId) {
        let brief = &self.briefs[id.0 as usize];
        let place = &self.plan.of[brief.place.0 as usize];
        while let Some((of, level)) = self.active.last()
            && (*level > self.level || *level == self.level && !place.in_loops.contains(of))
        {
            self.active.pop();
        }
        if let Some(heads) = place.heads {
            if self.active.last() != Some(&(heads, self.level)) {
                let again = self.active.iter().any(|(of, _)| *of == heads);
                self.active.push((heads, self.level));
                self.found[heads as usize].entries += 1;
                if let Some(inner) = self.inside[heads as usize] {
                    self.trips[inner as usize].enter(again);
                }
            }
            self.found[heads as usize].turns += 1;
            if let Some(inner) = self.inside[heads as usize] {
                self.trips[inner as usize].turn();
            }
            let below = self.active.len().checked_sub(2).map(|below| self.active[below]);
            if below.is_some_and(|(of, level)| level == self.level && self.inside[of as usize] == Some(heads)) {
                self.trips[heads as usize].trip();
            }
        }
        for (i, (of, _)) in self.active.iter().enumerate() {
            // A recursive function's loop counts once.
            if !self.active[..i].iter().any(|(other, _)| other == of) {
                let found = &mut self.found[*of as usize];
                found.instructions += u64::from(brief.instructions);
                found.gpu_tenths += u64::from(brief.gpu.tenths);
            }
        }
        self.level = self.level.saturating_add_signed(i32::from(brief.level)).max(1);
    }

    /// The lane ends here: its trips of loops in others.
    pub fn end(&mut self) -> TripsOfLane {
        self.active.clear();
        self.level = 1;
        let trips = self.trips.iter_mut().enumerate().filter(|(_, trips)| trips.any());
        trips.map(|(inner, trips)| (inner, std::mem::take(trips))).collect()
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &LoopCounter) {
        for (own, other) in self.found.iter_mut().zip(&other.found) {
            own.entries += other.entries;
            own.turns += other.turns;
            own.instructions += other.instructions;
            own.gpu_tenths += other.gpu_tenths;
        }
    }

    /// Says what merging would be, by what lanes counted: those of each warp, in order.
    pub fn merging(&mut self, warps: &[&[TripsOfLane]]) {
        let none = Trips::default();
        for outer in 0..self.found.len() {
            let Some(inner) = self.inside[outer].map(|inner| inner as usize) else { continue };
            let [inside, around] = [inner, outer].map(|of| (self.found[of].instructions, self.found[of].turns));
            let mut trips: Vec<Vec<&Trips>> = Vec::with_capacity(warps.len());
            for warp in warps {
                let of_lane = |lane: &TripsOfLane| lane.iter().position(|(of, _)| *of == inner);
                trips.push(warp.iter().map(|lane| of_lane(lane).map_or(&none, |at| &lane[at].1)).collect());
            }
            self.found[inner].merging = Merging::of(&trips, self.found[outer].header, inside, around);
        }
    }

    /// The loops that turned more than once each time, those with the most instructions first.
    pub fn finish(self) -> Vec<LoopRan> {
        let mut by_header: FxHashMap<Pc, LoopRan> = FxHashMap::default();
        for ran in self.found.into_iter().filter(|ran| ran.turns > ran.entries) {
            by_header.insert(ran.header, ran);
        }
        let mut all: Vec<LoopRan> = by_header.into_values().collect();
        all.sort_unstable_by_key(|ran| (std::cmp::Reverse(ran.instructions), ran.header));
        all
    }
}
