//! How often loops turned in the streams of lanes.

use heuristics::SegmentId;
use rustc_hash::FxHashMap;
use trace_format::Pc;

use super::super::loops::LoopPlan;
use super::merging::{Merging, Trips};
use super::spread::{Active, Recorder, Records, Spread};
use crate::lanes::brief::Brief;
use crate::{Batch, Control, Entry, LockId, Unit};

/// Locks of loops that are counted: one that is taken in each turn is soon met.
const MOST_LOCKS: usize = 4096;

/// A loop that ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopRan {
    /// Where its turns begin: the first instruction of its header.
    pub header: Pc,
    /// The branch at the end of a turn: compilers give it the line of the `for` or `while`.
    pub back: Pc,
    /// How many loops of its function are around it, itself included.
    pub depth: u32,
    /// How often lanes reached it from outside.
    pub entries: u64,
    /// Its turns: how often lanes were at its header.
    pub turns: u64,
    /// The instructions of its turns, those of functions called there included.
    pub instructions: u64,
    /// The same as a GPU's, in tenths.
    pub gpu_tenths: u64,
    /// How often lanes took a lock in its turns, always the same one, or the next number of a counter: where they do so
    /// in each turn, a turn may be a piece of work that a thread took when it was free.
    pub takes: u64,
    /// What it would be to make one loop of it and the one around it, where it is the only one there and holds none.
    pub merging: Option<Merging>,
    /// How its turns differ among lanes, where it is in another loop and that was asked for.
    pub spread: Option<Spread>,
    /// The arms of branches in its turns and in no loop further in, where their spread was asked for.
    pub arms: Vec<ArmRan>,
}

/// An arm of a branch that ran: not every turn of the loop around it comes there.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmRan {
    /// Its first instruction.
    pub at: Pc,
    /// What a lane runs of it each time, in a GPU's instructions.
    pub body: f64,
    /// How the turns that take it differ among lanes.
    pub spread: Spread,
}

impl LoopRan {
    /// How many instructions of a unit one of the processor's is in its turns.
    #[must_use]
    pub fn issued_per_fetch(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Processor => 1.0,
            Unit::Gpu => self.gpu_tenths as f64 / (10 * self.instructions.max(1)) as f64,
        }
    }
}

/// A lane's trips, by loop; only of those that it reached.
pub(crate) type TripsOfLane = Vec<(usize, Trips)>;

/// Counts turns of all loops in the streams of lanes. Arms of branches are counted as loops behind them that turn once,
/// where their spread is asked for.
#[derive(Clone)]
pub(crate) struct LoopCounter {
    pub(in super::super) plan: LoopPlan,
    pub(in super::super) found: Vec<LoopRan>,
    /// How many are loops.
    pub(in super::super) loops: u32,
    /// By loop: the loop in it, where the two could be one.
    pub(in super::super) inside: Vec<Option<u32>>,
    /// By loop in another: its trips in turns of that one, of the lane.
    pub(in super::super) trips: Vec<Trips>,
    pub(in super::super) briefs: Vec<Brief>,
    /// By segment: whether it counts up what all share.
    pub(in super::super) counting: Vec<bool>,
    /// How often a loop's turns took a lock, of some.
    pub(in super::super) locks: FxHashMap<(u32, LockId), u64>,
    /// The loops that the lane is in, the innermost last.
    pub(in super::super) active: Vec<Active>,
    pub(in super::super) level: u32,
    /// How the turns of lanes differ, where that is asked for.
    pub(in super::super) recorder: Option<Recorder>,
}

impl LoopCounter {
    /// The next piece of a lane.
    pub fn see(&mut self, batch: &Batch) {
        for code in &batch.codes {
            match code.entry() {
                Entry::Control(index) => match batch.controls[index] {
                    Control::Level(level) => self.level = level,
                    Control::Begin { .. } => self.leave_all(),
                    Control::Acquire(lock) => self.takes(lock),
                    _ => {}
                },
                Entry::Segment(id) => self.segment(id),
            }
        }
    }

    fn segment(&mut self, id: SegmentId) {
        let brief = &self.briefs[id.0 as usize];
        let place = &self.plan.of[brief.place.0 as usize];
        while let Some(&Active { of, level, .. }) = self.active.last()
            && (level > self.level || level == self.level && !place.in_loops.contains(&of))
        {
            self.active.pop();
            self.recorder.iter_mut().for_each(|recorder| recorder.leave(of, &self.active));
        }
        if let Some(heads) = place.heads {
            let is_in = |one: &Active| one.of == heads && one.level == self.level;
            if !self.active.last().is_some_and(is_in) {
                let again = self.active.iter().any(|one| one.of == heads);
                self.active.push(Active { of: heads, level: self.level, turn: 0 });
                self.found[heads as usize].entries += 1;
                if let Some(inner) = self.inside[heads as usize] {
                    self.trips[inner as usize].enter(again);
                }
                self.recorder.iter_mut().for_each(|recorder| recorder.enter(heads, again));
            }
            if let Some(last) = self.active.last_mut() {
                last.turn = last.turn.wrapping_add(1);
            }
            self.recorder.iter_mut().for_each(|recorder| recorder.turn(&self.active));
            self.found[heads as usize].turns += 1;
            if let Some(inner) = self.inside[heads as usize] {
                self.trips[inner as usize].turn();
            }
            let below = self.active.iter().rev().skip(1).find(|one| one.of < self.loops);
            if below.is_some_and(|one| one.level == self.level && self.inside[one.of as usize] == Some(heads)) {
                self.trips[heads as usize].trip();
            }
        }
        for (i, Active { of, .. }) in self.active.iter().enumerate() {
            // A recursive function's loop counts once.
            if !self.active[..i].iter().any(|other| other.of == *of) {
                let found = &mut self.found[*of as usize];
                found.instructions += u64::from(brief.instructions);
                found.gpu_tenths += u64::from(brief.gpu.tenths);
            }
        }
        self.recorder.iter_mut().for_each(|recorder| recorder.ran(brief.gpu.tenths));
        self.level = self.level.saturating_add_signed(i32::from(brief.level)).max(1);
        if self.counting[id.0 as usize] {
            self.active.iter().for_each(|one| self.found[one.of as usize].takes += 1);
        }
    }

    fn takes(&mut self, lock: LockId) {
        for one in &self.active {
            let has_room = self.locks.len() < MOST_LOCKS;
            match self.locks.get_mut(&(one.of, lock)) {
                Some(taken) => *taken += 1,
                None if has_room => drop(self.locks.insert((one.of, lock), 1)),
                None => {}
            }
        }
    }

    /// The lane is in no loop any more.
    fn leave_all(&mut self) {
        while let Some(Active { of, .. }) = self.active.pop() {
            self.recorder.iter_mut().for_each(|recorder| recorder.leave(of, &self.active));
        }
        self.level = 1;
    }

    /// The lane ends here: its trips of loops in others.
    pub fn end(&mut self) -> TripsOfLane {
        self.leave_all();
        let trips = self.trips.iter_mut().enumerate().filter(|(_, trips)| trips.any());
        trips.map(|(inner, trips)| (inner, std::mem::take(trips))).collect()
    }

    /// Of the lane that ended: its records at places; none where they are not asked for.
    pub fn records(&mut self) -> Option<Vec<Records>> {
        self.recorder.as_mut().map(Recorder::end)
    }

    /// Adds what a warp issues at places, whose lanes have these records.
    pub fn issues(&mut self, lanes: &[Vec<Records>]) {
        self.recorder.iter_mut().for_each(|recorder| recorder.issues(lanes));
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &LoopCounter) {
        for (own, other) in self.found.iter_mut().zip(&other.found) {
            own.entries += other.entries;
            own.turns += other.turns;
            own.takes += other.takes;
            own.instructions += other.instructions;
            own.gpu_tenths += other.gpu_tenths;
        }
        other.locks.iter().for_each(|(key, taken)| *self.locks.entry(*key).or_default() += taken);
        if let (Some(own), Some(other)) = (&mut self.recorder, &other.recorder) {
            own.merge(other);
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
    pub fn finish(mut self) -> Vec<LoopRan> {
        for ((of, _), taken) in &self.locks {
            let takes = &mut self.found[*of as usize].takes;
            *takes = (*takes).max(*taken);
        }
        let arms = self.found.split_off(self.loops as usize);
        let spread = |number: usize| self.recorder.as_ref().and_then(|recorder| recorder.spread(number).cloned());
        let mut by_header: FxHashMap<Pc, LoopRan> = FxHashMap::default();
        for (number, mut ran) in self.found.into_iter().enumerate().filter(|(_, ran)| ran.turns > ran.entries) {
            ran.spread = spread(number);
            by_header.insert(ran.header, ran);
        }
        for (number, arm) in (self.loops as usize..).zip(arms).filter(|(_, arm)| arm.turns > 0) {
            let around = by_header.get_mut(&arm.back);
            if let (Some(around), Some(spread)) = (around, spread(number)) {
                let body = arm.gpu_tenths as f64 / (10 * arm.turns) as f64;
                around.arms.push(ArmRan { at: arm.header, body, spread });
            }
        }
        let mut all: Vec<LoopRan> = by_header.into_values().collect();
        all.sort_unstable_by_key(|ran| (std::cmp::Reverse(ran.instructions), ran.header));
        all
    }
}
