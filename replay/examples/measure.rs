//! A measure that lockstep does not bring: how often the active lanes change from one fetch to the next.
//! `cargo run --release -p replay --example measure -- trace.bin` prints it for every model.

use std::error::Error;
use std::path::Path;

use heuristics::{LaneSet, Spec};
use replay::metrics::{Ended, Finding, Measure, Measured, Metric, Step};
use replay::view::{View, ViewOptions};
use replay::{LaneSource, Outcome, ReplayOptions, Result};

/// The changes, that to the first fetch's lanes included.
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

fn replayed(lanes: &dyn LaneSource, models: &str) -> std::result::Result<Vec<Outcome>, Box<dyn Error>> {
    let measure = Measure::new("changes", |_warp| Some(Box::new(Counter::default())));
    let options = ReplayOptions { measures: vec![measure], ..ReplayOptions::default() };
    Ok(replay::replay(lanes, &Spec::parse_list(models)?, &options, None, &|_, _| {})?)
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which trace?")?;
    let trace = trace_format::Trace::open(Path::new(&path))?;
    for outcome in replayed(&View::new(&trace, &ViewOptions::default())?, "all")? {
        println!("{}: {:?} in {} fetches", outcome.heuristic, outcome.found::<Changes>(), outcome.counts.fetches());
    }
    Ok(())
}

#[test]
fn the_lanes_change_at_each_arm_of_a_diamond() {
    let lanes = replay::in_memory::InMemory::of_branches(&[&[1, 2, 3, 5], &[1, 2, 4, 5]]);
    // 1 and 2 for both, 3 for the first, 4 for the second, 5 for both.
    assert_eq!(replayed(&lanes, "minpc").unwrap()[0].found::<Changes>().unwrap().0, 4);
}
