//! The memory of the Long family: the last block entries of each lane, and the priority that follows from them.

use std::collections::VecDeque;

use trace_format::Pc;

use crate::{Lane, LaneSet, Together, WarpView};

/// The most block entries that a lane can be told to remember.
pub(crate) const MOST: u32 = 64;

/// Each lane's last N block-entry pcs; zeros at first.
pub(crate) struct History {
    entries: usize,
    rings: Vec<VecDeque<Pc>>,
}

impl History {
    pub(crate) fn new(entries: u32, lanes: usize) -> History {
        let entries = entries as usize;
        History { entries, rings: vec![std::iter::repeat_n(Pc(0), entries).collect(); lanes] }
    }

    /// The lanes enter a block at this pc.
    pub(crate) fn record(&mut self, lanes: LaneSet, pc: Pc) {
        for lane in lanes {
            let ring = &mut self.rings[lane.index()];
            ring.pop_front();
            ring.push_back(pc);
        }
    }

    /// The lanes entered the blocks of a run together, led at its beginning by `reference`. The first segment counts
    /// unless that lane goes on inside a block.
    pub(crate) fn record_run(&mut self, run: &Together, reference: Option<Lane>) {
        let goes_on = reference.is_some_and(|l| run.lanes.contains(l) && !run.first_starts_block.contains(l));
        let mut last: Vec<Pc> = run.block_entries_backwards(!goes_on).take(self.entries).collect();
        last.reverse();
        for pc in last {
            self.record(run.lanes, pc);
        }
    }

    /// Whether all these lanes remember the same.
    pub(crate) fn alike(&self, lanes: LaneSet) -> bool {
        let mut rings = lanes.iter().map(|l| &self.rings[l.index()]);
        let first = rings.next();
        rings.all(|r| Some(r) == first)
    }

    /// The ready lanes of the highest priority. A lane's priority is how many other lanes (finished ones too) remember
    /// the pc at which it stands: those have been where it is, so it is behind them.
    pub(crate) fn furthest_behind(&self, warp: &WarpView) -> LaneSet {
        let mut best = (0, LaneSet::EMPTY);
        for group in warp.groups() {
            let know: LaneSet =
                (0..self.rings.len()).filter(|l| self.rings[*l].contains(&group.pc)).map(|l| Lane(l as u8)).collect();
            let all = know.len();
            // A lane that itself remembers its pc has one lane fewer to count.
            for (lanes, priority) in [(group.lanes - know, all), (group.lanes & know, all.saturating_sub(1))] {
                if lanes.is_empty() {
                } else if best.1.is_empty() || priority > best.0 {
                    best = (priority, lanes);
                } else if priority == best.0 {
                    best.1 = best.1 | lanes;
                }
            }
        }
        best.1
    }
}

/// Whether the group chosen last goes on: its reference lane is ready and inside a basic block.
pub(crate) fn goes_on(warp: &WarpView, reference: Option<Lane>) -> Option<LaneSet> {
    let lane = reference.filter(|l| warp.ready().contains(*l) && !warp.lane(*l).starts_block)?;
    Some(warp.mates(lane))
}
