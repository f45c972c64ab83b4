//! Active lanes by instruction: of each instruction, how many of its fetches had 1, 2 … W active lanes.
//!
//! Worked number: an instruction fetched three times, for 4, 4 and 1 of 4 lanes: 1 0 0 2. Summed over instructions it is the histogram of the
//! whole replay.

use heuristics::{Program, SegmentId};
use rustc_hash::FxHashMap;
use trace_format::Pc;

use super::{Metric, Step};
use crate::Result;

/// By instruction, in the order of addresses: its fetches by number of active lanes; index 0 is one lane.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ActiveLanes {
    /// Each instruction once.
    pub all: Vec<(Pc, Vec<u64>)>,
}

impl ActiveLanes {
    /// Adds those of another warp.
    pub fn add(&mut self, other: &ActiveLanes) {
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

    /// What was found. `program` is the one that was replayed.
    #[must_use]
    pub fn finish(self, program: &Program) -> ActiveLanes {
        let mut all: FxHashMap<Pc, Vec<u64>> = FxHashMap::default();
        for ((segment, first, end, active), fetches) in self.fetches {
            for at in first..end {
                let pc = program.segments[segment].instructions[at as usize].pc;
                all.entry(pc).or_insert_with(|| vec![0; self.lanes])[usize::from(active) - 1] += fetches;
            }
        }
        ActiveLanes { all: sorted(all) }
    }
}

impl Metric for ActiveCounter {
    fn step(&mut self, step: &Step) -> Result<()> {
        let (segment, first) = step.place();
        let key = (segment, first, first + step.instructions.len() as u32, step.lanes.len() as u16);
        *self.fetches.entry(key).or_default() += 1;
        Ok(())
    }
}
