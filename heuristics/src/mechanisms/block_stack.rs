//! A SIMT stack for a whole block of warps, which `tbc` and `lwm` share. They differ in how the lanes of an entry share
//! fetches.

use crate::mechanisms::stack::{Next, Stack};
use crate::warp::reconvergence::Branch;
use crate::{Choice, Heuristic, LaneSet, Lead, Placement, Ran, Seats, Together, WarpView};

/// A model of one stack per block.
pub(crate) struct BlockStack {
    stack: Stack,
    /// The fetches, as sets of lanes, that run these lanes, which stand at one pc.
    fetches: fn(&Next, &Seats) -> Vec<LaneSet>,
    /// The lanes that the stack let run last.
    running: LaneSet,
    /// Those of their fetches that are still to come, the next one last.
    to_come: Vec<LaneSet>,
}

impl BlockStack {
    pub(crate) fn new(lanes: usize, placement: Placement, fetches: fn(&Next, &Seats) -> Vec<LaneSet>) -> BlockStack {
        BlockStack { stack: Stack::new(lanes, placement), fetches, running: LaneSet::EMPTY, to_come: Vec::new() }
    }
}

impl Heuristic for BlockStack {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        if self.to_come.is_empty() {
            match self.stack.next(warp) {
                Ok(next) => {
                    self.running = next.lanes;
                    self.to_come = (self.fetches)(&next, warp.seats());
                    self.to_come.reverse();
                }
                Err(deadlock) => return deadlock,
            }
        }
        Choice::Run(self.to_come.pop().unwrap_or_default())
    }

    fn executed(&mut self, warp: &WarpView, ran: &Ran) {
        self.stack.ran(Branch::of(warp, ran).of_all(self.running));
    }

    fn runs_on(&self, _warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        // An entry that runs in one fetch is chosen as that of a warp's stack is.
        lanes == self.running && self.to_come.is_empty() && self.stack.runs_on(lanes, lead)
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        self.stack.is_whole() && self.to_come.is_empty()
    }

    fn ran(&mut self, run: &Together) {
        self.stack.ran(Branch::of_run(run));
    }
}
