//! Passes: how often hardware that is narrower than the warp issues a fetch, if it leaves out passes without an active
//! lane.
//!
//! Hardware whose execution units have N lanes issues the fetch of a warp of W lanes in W / N passes, lanes 0 to N - 1
//! of the warp first; Intel's GPUs do so with 4 lanes, and AMD's with half of a wave of 64. A pass in which no lane is
//! active can be left out: *basic cycle compression* of Vaidya et al., *SIMD divergence optimization through intra-warp
//! compaction*, ISCA 2013. Formula: passes are summed over fetches; their efficiency is thread instructions / (N x
//! passes).
//!
//! Worked number: lanes 0 to 7 run a branch; lanes 0 to 3 take an arm of 3 instructions, lanes 4 to 7 one of 1, and all
//! run 1 more. In passes of 4 lanes, the 2 fetches of all take 2 each, the 4 fetches of the arms 1 each: 8 passes of
//! 12, and an efficiency of 32 / 32 = 1, where SIMT efficiency is 32 / 48. Had odd lanes taken one arm and even lanes
//! the other, no pass could be left out.

use heuristics::{LaneSet, MAX_LANES, Seats};

use super::{Ended, Finding, Measure, Measured, Metric, Step};
use crate::entry::{Cell, Entry, Switch, Table, of};
use crate::{Column, Kind, Result};

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "passes",
    file: "replay/src/metrics/passes.rs",
    switch: Some(&Switch {
        name: "pass-lanes",
        help: "Count the passes that hardware with N lanes needs to issue the fetches; passes without an active lane are skipped",
        number: Some((1, MAX_LANES as u32)),
    }),
    needs_addresses: false,
    measure: Some(|lanes| Passes::measure(lanes as usize)),
    columns: &[
        Column::counted("pass_lanes", "Lanes of a pass; with --pass-lanes.", |o| of(o, |found: &Passes| found.lanes)),
        Column::counted(
            "passes",
            "Passes in which the warp instructions are issued, those without an active lane left out.",
            |o| of(o, |found: &Passes| found.taken),
        ),
        Column::counted("passes_left_out", "Passes without an active lane.", |o| {
            of(o, |found: &Passes| found.left_out)
        }),
        Column::counted("pass_efficiency", "Thread instructions / (lanes of a pass x passes).", |o| {
            of(o, |found: &Passes| found.efficiency(o.counts.thread_instructions()))
        })
        .of(Kind::Quotient),
    ],
    table: Some(&Table {
        header: &["passes", "left out", "efficiency of passes"],
        row: |outcome| {
            let found: &Passes = outcome.found()?;
            let efficiency = found.efficiency(outcome.counts.thread_instructions());
            let share = found.left_out as f64 / (found.taken + found.left_out).max(1) as f64;
            Some(vec![Cell::Count(found.taken), Cell::Share(share), efficiency.map_or(Cell::Empty, Cell::Share)])
        },
        legend: |outcome| {
            let lanes = outcome.found().map_or(0, |found: &Passes| found.lanes);
            format!("passes: issues of {lanes} lanes each; left out: the share of passes that have no active lane")
        },
    }),
};

/// The passes of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes {
    /// Lanes of a pass.
    pub lanes: usize,
    /// Passes with an active lane.
    pub taken: u64,
    /// Passes without.
    pub left_out: u64,
}

impl Passes {
    /// Asks for them, of so many lanes each.
    #[must_use]
    pub fn measure(lanes: usize) -> Measure {
        let lanes = lanes.max(1);
        Measure::new(ENTRY.name, move |_| Some(Box::new(Passes { lanes, taken: 0, left_out: 0 })))
    }

    /// Thread instructions / lane-slots of the passes; none where there are no passes.
    #[must_use]
    pub fn efficiency(&self, thread_instructions: u64) -> Option<f64> {
        (self.taken > 0).then(|| thread_instructions as f64 / (self.lanes as f64 * self.taken as f64))
    }

    /// How many passes of a fetch have an active lane.
    fn with_active(&self, active: LaneSet, seats: &Seats) -> usize {
        let mut passes = [0_u64; MAX_LANES / 64];
        for lane in active {
            let pass = seats.home(lane) / self.lanes;
            passes[pass / 64] |= 1 << (pass % 64);
        }
        passes.iter().map(|bits| bits.count_ones() as usize).sum()
    }
}

impl Measured for Passes {
    fn merge(&mut self, other: &Passes) {
        self.taken += other.taken;
        self.left_out += other.left_out;
    }
}

impl Metric for Passes {
    fn step(&mut self, step: &Step) -> Result<()> {
        let all = step.seats().width().div_ceil(self.lanes);
        let taken = self.with_active(step.lanes, step.seats());
        self.taken += (taken * step.instructions.len()) as u64;
        self.left_out += ((all - taken) * step.instructions.len()) as u64;
        Ok(())
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        Ok(Finding::new(*self))
    }
}
