//! `round-robin-eq`: lanes take turns, with those at the same pc.
//!
//! The second baseline of the simulator of Milanez et al. (Parallel Computing 40, 2014).
//!
//! Rule: the next ready lane after the one that led last, among those that have not run since the last reset, runs one
//! instruction with all ready lanes at its pc. When all ready lanes have run, all may run again.
//!
//! It reconverges by chance only: lanes advance at the same pace, so lanes that part by one instruction stay apart.
//!
//! Worked example: `1 2b 5 6` and `1 2b 3 5 6`: after 2, lane 0 runs 5, lane 1 runs 3, lane 0 runs 6, and lane 1 is
//! left with 5 and 6.

use crate::models::round_robin::next_after;
use crate::{Choice, Entry, Extent, Family, Heuristic, Lane, LaneSet, Seats, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "round-robin-eq",
    family: Family::Bounds,
    rule: "The next ready lane runs one instruction with the lanes at its pc; each lane once before any runs again.",
    source: "Milanez et al. 2014",
    file: file!(),
    parameters: &[],
    needs_control_flow: false,
    runs_blocks: false,
    build: |_, _, _| Box::new(Round::default()),
};

/// Whose turn it is.
#[derive(Default)]
struct Round {
    last: Option<Lane>,
    /// Those that have run since all might.
    ran: LaneSet,
}

impl Heuristic for Round {
    fn extent(&self, _: &Seats) -> Extent {
        Extent::Instruction
    }

    fn choose(&mut self, warp: &WarpView) -> Choice {
        let mut candidates = warp.ready() - self.ran;
        if candidates.is_empty() {
            (self.ran, candidates) = (LaneSet::EMPTY, warp.ready());
        }
        self.last = next_after(candidates, self.last);
        let lanes = self.last.map_or(LaneSet::EMPTY, |lane| warp.mates(lane));
        self.ran = self.ran | lanes;
        Choice::Run(lanes)
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn lanes_one_instruction_apart_stay_apart() {
        assert_eq!(schedule("round-robin-eq", &["1 2b 5 6", "1 2b 3 5 6"]), "1:0-1 2:0-1 5:0 3:1 6:0 5:1 6:1");
    }
}
