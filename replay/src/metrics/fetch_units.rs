//! Fetch units: how many cycles the model's schedule would take on hardware that fetches for several groups of a warp
//! at once.
//!
//! Formula: the model's fetches are placed in their order. Each goes into the first cycle after the last fetch of each
//! of its lanes in which fewer than N fetches were placed, and none at its pc (two groups at one pc would be one). What
//! a lane does after it took a lock comes after what the lane before did until it gave the lock back. What lanes do
//! after a barrier comes after all that they did before it. *Parallelism* is thread instructions / cycles: with one
//! unit, the mean number of active lanes. A fetch is not moved ahead by more than 65,536 cycles: a real machine sees
//! less far.
//!
//! Worked number: four lanes run 1 instruction; lanes 0 and 1 then run 3, lanes 2 and 3 run 1, and all run 1 more: 6
//! fetches and 6 cycles on one unit. On two units the two arms run beside each other: 1 + 3 + 1 = 5 cycles, and a
//! parallelism of 16 / 5.

use heuristics::{Lane, LaneSet, MAX_LANES};
use rustc_hash::FxHashMap;
use trace_format::{Instruction, Pc};

use super::{Ended, Finding, Measure, Measured, Metric, Run, Step};
use crate::entry::{Cell, Entry, Switch, Table, of};
use crate::{Column, Kind, LockId, Result, SyncEvent};

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "fetch-units",
    file: "replay/src/metrics/fetch_units.rs",
    switch: Some(&Switch {
        name: "fetch-units",
        help: "Count the cycles that the fetches take on hardware that fetches for up to N groups of a warp at once",
        number: Some((1, MOST_FETCH_UNITS as u32)),
    }),
    needs_addresses: false,
    measure: Some(|units| Cycles::measure(units as usize)),
    columns: &[
        Column::counted(
            "fetch_units",
            "Groups of a warp that can be fetched for in one cycle; with --fetch-units.",
            |o| of(o, |found: &Cycles| found.units),
        ),
        Column::counted(
            "cycles",
            "Cycles that the warp instructions take on the fetch units, summed over warps.",
            |o| of(o, |found: &Cycles| found.cycles),
        ),
        Column::counted("parallelism", "Thread instructions per cycle on the fetch units.", |o| {
            of(o, |found: &Cycles| found.parallelism(o.counts.thread_instructions()))
        })
        .of(Kind::Quotient),
    ],
    table: Some(&Table {
        header: &["cycles", "thread instructions per cycle"],
        row: |outcome| {
            let found: &Cycles = outcome.found()?;
            let parallelism = found.parallelism(outcome.counts.thread_instructions());
            Some(vec![Cell::Count(found.cycles), Cell::number(parallelism)])
        },
        legend: |outcome| {
            let units = outcome.found().map_or(0, |found: &Cycles| found.units);
            format!("cycles: the fetches in the model's order on {units} fetch units")
        },
    }),
};

/// The cycles of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycles {
    /// The fetch units on which the fetches were placed.
    pub units: usize,
    /// The cycles that the fetches take there, summed over warps.
    pub cycles: u64,
}

impl Cycles {
    /// Asks for them, on so many units: 1 to [`MOST_FETCH_UNITS`].
    #[must_use]
    pub fn measure(units: usize) -> Measure {
        Measure::new(ENTRY.name, move |_| Some(Box::new(FetchUnits::new(units))))
    }

    /// Thread instructions per cycle; none where there are no cycles.
    #[must_use]
    pub fn parallelism(&self, thread_instructions: u64) -> Option<f64> {
        (self.cycles > 0).then(|| thread_instructions as f64 / self.cycles as f64)
    }
}

impl Measured for Cycles {
    fn merge(&mut self, other: &Cycles) {
        self.cycles += other.cycles;
    }
}

/// The most units that can be asked for: the cycles that are looked at take 8 bytes each per unit.
pub const MOST_FETCH_UNITS: usize = 64;

/// How many of the last cycles can still take a fetch.
const WINDOW: u64 = 1 << 16;

/// When a lock was given back last: by its only holder, and by one of several.
#[derive(Clone, Copy, Default)]
struct Free {
    alone: u64,
    shared: u64,
}

/// Places the fetches of one warp's replay on units.
pub struct FetchUnits {
    units: usize,
    /// Cycles so far.
    cycles: u64,
    /// By cycle, modulo [`WINDOW`]: a cycle from it on up to which all are full; itself where it is not.
    next: Vec<u64>,
    /// By cycle, modulo [`WINDOW`]: how many fetches it has, and their pcs, `units` of them.
    used: Vec<u8>,
    pcs: Vec<Pc>,
    /// By lane: the first cycle in which it can run.
    ready: Vec<u64>,
    locks: FxHashMap<LockId, Free>,
}

impl FetchUnits {
    /// For so many units: 1 to [`MOST_FETCH_UNITS`].
    #[must_use]
    pub fn new(units: usize) -> FetchUnits {
        let units = units.clamp(1, MOST_FETCH_UNITS);
        FetchUnits {
            units,
            cycles: 0,
            next: vec![0; WINDOW as usize],
            used: vec![0; WINDOW as usize],
            pcs: vec![Pc(0); WINDOW as usize * units],
            ready: vec![0; MAX_LANES],
            locks: FxHashMap::default(),
        }
    }

    /// Puts a fetch at this pc into the first cycle from `earliest` on that can take it; returns the cycle.
    fn place(&mut self, pc: Pc, earliest: u64) -> u64 {
        let mut cycle = earliest.max((self.cycles + 1).saturating_sub(WINDOW));
        loop {
            cycle = self.not_full(cycle);
            if cycle >= self.cycles {
                self.open(cycle);
            }
            let at = (cycle % WINDOW) as usize;
            let (first, used) = (at * self.units, usize::from(self.used[at]));
            if !self.pcs[first..first + used].contains(&pc) {
                self.pcs[first + used] = pc;
                self.used[at] += 1;
                if used + 1 == self.units {
                    self.next[at] = cycle + 1;
                }
                return cycle;
            }
            cycle += 1;
        }
    }

    /// The first cycle from this one on that is not full; it may be one that has not begun.
    fn not_full(&mut self, from: u64) -> u64 {
        let mut end = from;
        while end < self.cycles && self.next[(end % WINDOW) as usize] != end {
            end = self.next[(end % WINDOW) as usize];
        }
        // The way is made short for the next time.
        let mut at = from;
        while at < end {
            at = std::mem::replace(&mut self.next[(at % WINDOW) as usize], end);
        }
        end
    }

    /// Begins the cycles up to this one, empty.
    fn open(&mut self, cycle: u64) {
        for new in self.cycles..=cycle {
            let at = (new % WINDOW) as usize;
            (self.next[at], self.used[at]) = (new, 0);
        }
        self.cycles = cycle + 1;
    }

    fn not_before(&mut self, lane: Lane, cycle: u64) {
        let ready = &mut self.ready[lane.index()];
        *ready = cycle.max(*ready);
    }
}

impl FetchUnits {
    fn fetched<'i>(&mut self, lanes: LaneSet, instructions: impl Iterator<Item = &'i Instruction>) {
        let mut earliest = lanes.iter().map(|l| self.ready[l.index()]).max().unwrap_or(0);
        for instruction in instructions {
            earliest = self.place(instruction.pc, earliest) + 1;
        }
        for lane in lanes {
            self.ready[lane.index()] = earliest;
        }
    }
}

impl Metric for FetchUnits {
    fn step(&mut self, step: &Step) -> Result<()> {
        self.fetched(step.lanes, step.instructions.iter());
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        self.fetched(run.lanes(), run.instructions().flatten());
        Ok(())
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        Ok(Finding::new(Cycles { units: self.units, cycles: self.cycles }))
    }

    fn synchronised(&mut self, event: &SyncEvent) {
        match *event {
            SyncEvent::Gives { lane, lock, shared } => {
                let (ready, free) = (self.ready[lane.index()], self.locks.entry(lock).or_default());
                let last = if shared { &mut free.shared } else { &mut free.alone };
                *last = ready.max(*last);
            }
            SyncEvent::Takes { lane, lock, shared } => {
                let free = self.locks.get(&lock).copied().unwrap_or_default();
                self.not_before(lane, if shared { free.alone } else { free.alone.max(free.shared) });
            }
            SyncEvent::Meets { lanes } => {
                let last = lanes.iter().map(|l| self.ready[l.index()]).max().unwrap_or(0);
                lanes.iter().for_each(|lane| self.not_before(lane, last));
            }
            SyncEvent::Waits { .. } | SyncEvent::Forced { .. } => {}
        }
    }
}
