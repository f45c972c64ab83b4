//! Active lanes by instruction: of each instruction, how many of its fetches had 1, 2 … W active lanes.
//!
//! Worked number: an instruction fetched three times, for 4, 4 and 1 of 4 lanes: 1 0 0 2. Summed over instructions it
//! is the histogram of the whole replay.

use heuristics::SegmentId;
use rustc_hash::FxHashMap;
use trace_format::Pc;

use super::{Ended, Finding, Measure, Measured, Metric, Step};
use crate::Result;
use crate::registry::Entry;

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
    /// By segment, first instruction, the one after the last, and active lanes.
    fetches: FxHashMap<(SegmentId, u32, u32, u16), u64>,
}

impl ActiveCounter {
    /// For a warp of so many lanes.
    #[must_use]
    pub fn new(lanes: usize) -> ActiveCounter {
        ActiveCounter { lanes, fetches: FxHashMap::default() }
    }
}

impl Metric for ActiveCounter {
    fn step(&mut self, step: &Step) -> Result<()> {
        let (segment, first) = step.place();
        let key = (segment, first, first + step.instructions.len() as u32, step.lanes.len() as u16);
        *self.fetches.entry(key).or_default() += 1;
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &Ended) -> Result<Finding> {
        let mut all: FxHashMap<Pc, Vec<u64>> = FxHashMap::default();
        for ((segment, first, end, active), fetches) in self.fetches {
            for at in first..end {
                let pc = ended.warp.program().segments[segment].instructions[at as usize].pc;
                all.entry(pc).or_insert_with(|| vec![0; self.lanes])[usize::from(active) - 1] += fetches;
            }
        }
        Ok(Finding::new(ActiveLanes { all: sorted(all) }))
    }
}
