//! Active lanes by instruction: of each instruction, how many of its fetches had 1, 2 … W active lanes.
//!
//! Worked number: an instruction fetched three times, for 4, 4 and 1 of 4 lanes: 1 0 0 2. Summed over instructions it
//! is the histogram of the whole replay.

use rustc_hash::FxHashMap;
use trace_format::Pc;

use super::counter::{Counter, Stretches};
use super::{Ended, Finding, Measure, Measured, Metric, Run, Step};
use crate::Result;
use crate::entry::Entry;

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "active-lanes",
    file: "replay/src/metrics/active_lanes.rs",
    switch: None,
    needs_addresses: false,
    measure: Some(|_| ActiveLanes::measure()),
    columns: &[],
    table: None,
};

/// By instruction, in the order of addresses: its fetches by number of active lanes; index 0 is one lane.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ActiveLanes {
    /// Each instruction once.
    pub all: Vec<(Pc, Vec<u64>)>,
}

impl ActiveLanes {
    /// Asks for them.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |warp| Some(Box::new(ActiveCounter::new(warp.most_active()))))
    }
}

impl Measured for ActiveLanes {
    fn merge(&mut self, other: &ActiveLanes) {
        let mut sum: FxHashMap<Pc, Vec<u64>> = self.all.drain(..).collect();
        for (pc, more) in &other.all {
            let counts = sum.entry(*pc).or_default();
            if counts.len() < more.len() {
                counts.resize(more.len(), 0);
            }
            counts.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        self.all = sorted(sum);
    }
}

fn sorted(map: FxHashMap<Pc, Vec<u64>>) -> Vec<(Pc, Vec<u64>)> {
    let mut all: Vec<(Pc, Vec<u64>)> = map.into_iter().collect();
    all.sort_unstable_by_key(|(pc, _)| *pc);
    all
}

/// Counts the active lanes of one warp's replay.
pub struct ActiveCounter {
    lanes: usize,
    stretches: Stretches,
    /// By active lanes.
    fetches: Counter,
}

impl ActiveCounter {
    /// For a warp of so many lanes.
    #[must_use]
    pub fn new(lanes: usize) -> ActiveCounter {
        ActiveCounter { lanes, stretches: Stretches::default(), fetches: Counter::default() }
    }
}

impl Metric for ActiveCounter {
    fn step(&mut self, step: &Step) -> Result<()> {
        let stretch = self.stretches.number(step);
        self.fetches.add(step.lanes.len() as u32, stretch, 1);
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        let active = run.lanes().len() as u32;
        run.segments.iter().for_each(|segment| self.fetches.add(active, segment.0, 1));
        Ok(())
    }

    fn finish(mut self: Box<Self>, ended: &Ended) -> Result<Finding> {
        let (mut all, program) = (FxHashMap::<Pc, Vec<u64>>::default(), ended.warp.program());
        for (active, stretch, fetches) in self.fetches.drain() {
            let (segment, first, end) = self.stretches.of(stretch, program);
            for instruction in &program.segments[segment].instructions[first as usize..end as usize] {
                all.entry(instruction.pc).or_insert_with(|| vec![0; self.lanes])[active as usize - 1] += fetches;
            }
        }
        Ok(Finding::new(ActiveLanes { all: sorted(all) }))
    }
}
