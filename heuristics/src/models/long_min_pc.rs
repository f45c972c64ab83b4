//! `long-minpc`: `long`, with ties broken by the smallest pc.
//!
//! Milanez et al., *Thread scheduling and memory coalescing for dynamic vectorization of SPMD workloads* (Parallel
//! Computing 40, 2014).
//!
//! Rule: at a block's start, among the lanes whose pc most other lanes remember, the one with the smallest pc runs,
//! with all ready lanes at its pc; inside a block the chosen lane goes on.
//!
//! It reconverges where `minpc` does while memories say nothing, and where `long` does when they say something.
//! It fails when a memory misleads: in a loop, the lane that went round again stands where the others were.
//!
//! Worked example: `1 2b 9b 3 4` and `1 2b 3 4`: after 2 nobody remembers 3 or 9; 3 is smaller, so lane 1 runs 3 and 4
//! and finishes; lane 0 follows alone.

use trace_format::Pc;

use crate::mechanisms::history::{History, Remembers};
use crate::models::long::PARAMETER;
use crate::warp::mask::Mask;
use crate::{
    Choice, Entry, Family, Heuristic, Lane, LaneSet, LaneState, SegmentTable, Together, Tracking, WarpView,
};

pub(crate) const ENTRY: Entry = Entry {
    name: "long-minpc",
    family: Family::MinPc,
    rule: "At each block, among the lanes whose pc most other lanes remember, the smallest pc runs.",
    source: "Milanez et al. 2014",
    file: file!(),
    parameters: &[PARAMETER],
    needs_control_flow: false,
    runs_blocks: false,
    build: |settings, lanes, _| of(settings.count("n"), lanes, |lane| (0, lane.pc)),
};

/// Long's priority with a rule that breaks its ties.
struct LongMinimum<M> {
    history: History<M>,
    reference: Option<Lane>,
    key: Key,
}

/// Of lanes of equal priority the one with the smallest runs, among equals the lowest.
pub(crate) type Key = fn(&LaneState) -> (i64, Pc);

/// The model of a warp of so many lanes that remember so many entries.
pub(crate) fn of(n: u32, lanes: usize, key: Key) -> Box<dyn Heuristic> {
    if lanes <= 64 {
        Box::new(LongMinimum::<u64>::new(n, lanes, key))
    } else {
        Box::new(LongMinimum::<LaneSet>::new(n, lanes, key))
    }
}

impl<M: Mask> LongMinimum<M> {
    fn new(n: u32, lanes: usize, key: Key) -> LongMinimum<M> {
        LongMinimum { history: History::new(n, lanes, Remembers::Blocks), reference: None, key }
    }
}

impl<M: Mask> Heuristic for LongMinimum<M> {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        self.history.look(warp);
        Choice::Run(self.pick(warp.states()))
    }

    fn tracking(&mut self) -> Option<&mut dyn Tracking> {
        Some(self)
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        true
    }

    fn ran_together(&mut self, run: &Together) {
        // Who led the last block does not matter: a new choice follows.
        self.history.record_run(run, self.reference);
    }
}

impl<M: Mask> Tracking for LongMinimum<M> {
    fn restart(&mut self) {
        self.history.restart();
    }

    fn stand(&mut self, lanes: LaneSet, state: &LaneState, instruction: u32, segments: &SegmentTable) {
        self.history.stand(M::of(lanes), state, instruction, segments);
    }

    fn pick(&mut self, states: &[LaneState]) -> LaneSet {
        if let Some(lanes) = self.history.goes_on(self.reference, states) {
            return lanes.lanes();
        }
        let smallest = |lane: &Lane| (self.key)(&states[lane.index()]);
        let Some(reference) = self.history.furthest_behind().each().min_by_key(smallest) else { return LaneSet::EMPTY };
        let lanes = self.history.mates(reference);
        self.history.enter(lanes, reference);
        self.reference = Some(reference);
        lanes.lanes()
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn the_smallest_pc_breaks_a_tie() {
        assert_eq!(schedule("long-minpc", &["1 2b 9b 3 4", "1 2b 3 4"]), "1:0-1 2:0-1 3:1 4:1 9:0 3:0 4:0");
    }
}
