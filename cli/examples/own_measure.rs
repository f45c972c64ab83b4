//! The measure of docs/own-models.md.

extern crate cli as lockstep;

use lockstep::heuristics::LaneSet;
use lockstep::replay::metrics::{Ended, Finding, Measure, Measured, Metric, Step};
use lockstep::replay::registry::{Entry, Switch, of};
use lockstep::replay::{Column, Result};

static CHANGES: Entry = Entry {
    name: "changes",
    file: file!(),
    switch: Some(&Switch { name: "changes", help: "Count how often the active lanes change", number: None }),
    needs_addresses: false,
    measure: Some(|_| Measure::new("changes", |_warp| Some(Box::new(Counter::default())))),
    columns: &[Column::counted("changes", "How often the active lanes change.", |o| of(o, |found: &Changes| found.0))],
    table: None,
};

/// The changes of all warps, that to the first fetch's lanes included.
#[derive(Clone, Debug)]
struct Changes(u64);

impl Measured for Changes {
    fn merge(&mut self, other: &Changes) {
        self.0 += other.0;
    }
}

/// Counts them on one warp.
#[derive(Default)]
struct Counter(u64, LaneSet);

impl Metric for Counter {
    fn step(&mut self, step: &Step) -> Result<()> {
        self.0 += u64::from(step.lanes != self.1);
        self.1 = step.lanes;
        Ok(())
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        Ok(Finding::new(Changes(self.0)))
    }
}

fn main() -> std::process::ExitCode {
    lockstep::run(lockstep::Registry::standard().with(&CHANGES))
}
