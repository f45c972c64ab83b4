//! Contention: what each lock costs a warp.
//!
//! For each lock: *acquisitions*; *waits*, acquisitions for which a lane had to wait since another lane of its warp
//! held the lock; the lanes that waited at least once; the *fetches held*, in which at least one active lane holds the
//! lock; the *fetches serialised*, those of them during which at least one lane waits for it; the *waiting slots*, the
//! number of lanes that wait for it, summed over all fetches; and the *instructions held*, thread instructions of lanes
//! that hold it.
//!
//! Worked number: two lanes run 1 instruction, take a lock, run 2 instructions, give it back and run 1. The first takes
//! it at once. While it runs its 2, the other waits: 2 acquisitions, 1 wait, 1 lane that waited, 4 fetches held, 2 of
//! them serialised, 2 waiting slots, and 4 instructions held.

use std::collections::BTreeMap;

use heuristics::{LaneSet, MAX_LANES};
use trace_format::Pc;

use super::{Ended, Finding, Measure, Measured, Metric, Run, Step};
use crate::entry::Entry;
use crate::{LockId, Result, SyncEvent};

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "contention",
    file: "replay/src/metrics/contention.rs",
    switch: None,
    needs_addresses: false,
    measure: Some(|_| Contention::measure()),
    columns: &[],
    table: None,
};

/// What was done with a lock.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LockUse {
    /// How often it was taken.
    pub acquisitions: u64,
    /// How often a lane had to wait for it.
    pub waits: u64,
    /// How many lanes waited for it at least once.
    pub lanes_that_waited: u64,
    /// Fetches in which an active lane held it.
    pub fetches_held: u64,
    /// Those of them during which a lane waited for it.
    pub fetches_serialised: u64,
    /// Lanes that waited for it, summed over fetches.
    pub waiting_slots: u64,
    /// Thread instructions of lanes that held it.
    pub instructions_held: u64,
    /// Warps in which it was taken.
    pub warps: u64,
    /// Acquisitions by place.
    pub taken_at: BTreeMap<LockSite, u64>,
}

/// Where a lane took a lock. The functions that take locks are not replayed, so it is what the lane ran before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LockSite {
    /// The instruction that it ran last: the call, or a jump of the linkage table (PLT) to which the call led. None
    /// where it had run nothing yet.
    pub last: Option<Pc>,
    /// The last call that it ran.
    pub call: Option<Pc>,
}

impl LockUse {
    fn add(&mut self, other: &LockUse) {
        self.acquisitions += other.acquisitions;
        self.waits += other.waits;
        self.lanes_that_waited += other.lanes_that_waited;
        self.fetches_held += other.fetches_held;
        self.fetches_serialised += other.fetches_serialised;
        self.waiting_slots += other.waiting_slots;
        self.instructions_held += other.instructions_held;
        self.warps += other.warps;
        for (pc, acquisitions) in &other.taken_at {
            *self.taken_at.entry(*pc).or_default() += acquisitions;
        }
    }
}

/// What was done with all locks of a replay; only those that were taken or waited for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Contention {
    /// By lock.
    pub locks: BTreeMap<LockId, LockUse>,
}

impl Contention {
    /// Asks for it; for views in which locks count.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |_| Some(Box::new(ContentionMeter::default())))
    }
}

impl Measured for Contention {
    fn merge(&mut self, other: &Contention) {
        for (lock, used) in &other.locks {
            self.locks.entry(*lock).or_default().add(used);
        }
    }
}

#[derive(Default)]
struct Now {
    holders: LaneSet,
    waiting: LaneSet,
    /// Since the beginning.
    waited: LaneSet,
    used: LockUse,
}

/// Measures the contention of one warp's replay.
pub struct ContentionMeter {
    locks: BTreeMap<LockId, Now>,
    /// The locks that are held or waited for.
    busy: Vec<LockId>,
    /// By lane: what it ran last.
    sites: Vec<LockSite>,
}

impl Default for ContentionMeter {
    fn default() -> ContentionMeter {
        ContentionMeter { locks: BTreeMap::new(), busy: Vec::new(), sites: vec![LockSite::default(); MAX_LANES] }
    }
}

impl ContentionMeter {
    fn busy(&mut self, lock: LockId) -> &mut Now {
        if !self.busy.contains(&lock) {
            self.busy.push(lock);
        }
        self.locks.entry(lock).or_default()
    }
}

impl ContentionMeter {
    /// These lanes ran so many instructions: the last one, and the last call among them.
    fn fetched(&mut self, lanes: LaneSet, fetches: u64, last: Option<Pc>, call: Option<Pc>) {
        for lock in &self.busy {
            let now = self.locks.get_mut(lock).expect("a busy lock is known");
            if !now.holders.is_disjoint(&lanes) {
                now.used.fetches_held += fetches;
                now.used.instructions_held += fetches * (now.holders & lanes).len() as u64;
                now.used.fetches_serialised += if now.waiting.is_empty() { 0 } else { fetches };
            }
            now.used.waiting_slots += fetches * now.waiting.len() as u64;
        }
        for lane in lanes {
            let site = &mut self.sites[lane.index()];
            (site.last, site.call) = (last, call.or(site.call));
        }
    }
}

impl Metric for ContentionMeter {
    fn step(&mut self, step: &Step) -> Result<()> {
        let last = step.instructions.last();
        let call = last.filter(|i| i.kind.is_call());
        self.fetched(step.lanes, step.instructions.len() as u64, last.map(|i| i.pc), call.map(|i| i.pc));
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        let last = run.briefs().next_back().map(|(_, brief)| brief.last);
        let call = run.briefs().rfind(|(_, brief)| brief.level > 0).map(|(_, brief)| brief.last);
        self.fetched(run.lanes(), run.fetches, last, call);
        Ok(())
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        let warps = |now: &Now| u64::from(now.used.acquisitions > 0);
        let of = |now: Now| LockUse { lanes_that_waited: now.waited.len() as u64, warps: warps(&now), ..now.used };
        Ok(Finding::new(Contention { locks: self.locks.into_iter().map(|(lock, now)| (lock, of(now))).collect() }))
    }

    fn synchronised(&mut self, event: &SyncEvent) {
        match *event {
            SyncEvent::Waits { lane, lock } => {
                let now = self.busy(lock);
                now.waiting.insert(lane);
                now.waited.insert(lane);
                now.used.waits += 1;
            }
            SyncEvent::Takes { lane, lock, .. } => {
                let at = self.sites[lane.index()];
                let now = self.busy(lock);
                now.waiting.remove(lane);
                now.holders.insert(lane);
                now.used.acquisitions += 1;
                *now.used.taken_at.entry(at).or_default() += 1;
            }
            SyncEvent::Gives { lane, lock, .. } => {
                let now = self.locks.entry(lock).or_default();
                now.holders.remove(lane);
                if now.holders.is_empty() && now.waiting.is_empty() {
                    self.busy.retain(|l| *l != lock);
                }
            }
            SyncEvent::Forced { lane } => self.locks.values_mut().for_each(|now| now.waiting.remove(lane)),
            SyncEvent::Meets { .. } => {}
        }
    }
}
