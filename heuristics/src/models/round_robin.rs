//! `round-robin`: every lane for itself, in turns.
//!
//! The baseline of the simulator of Milanez et al. (Parallel Computing 40, 2014).
//!
//! Rule: the next ready lane after the one that ran last runs one instruction, alone, even if others stand at its pc.
//!
//! It never reconverges: its fetches are the thread instructions, the most that any schedule can need.
//!
//! Worked example: `1 2` and `1 2` give 1 (lane 0), 1 (lane 1), 2 (lane 0), 2 (lane 1).

use crate::{Choice, Entry, Extent, Family, Heuristic, Lane, LaneSet, Seats, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "round-robin",
    family: Family::Bounds,
    rule: "The next ready lane runs one instruction, alone: nothing is shared.",
    source: "Milanez et al. 2014",
    file: file!(),
    parameters: &[],
    needs_control_flow: false,
    runs_blocks: false,
    build: |_, _, _| Box::new(RoundRobin { last: None }),
};

struct RoundRobin {
    last: Option<Lane>,
}

impl Heuristic for RoundRobin {
    fn extent(&self, _: &Seats) -> Extent {
        Extent::Instruction
    }

    fn choose(&mut self, warp: &WarpView) -> Choice {
        self.last = next_after(warp.ready(), self.last);
        Choice::Run(self.last.into_iter().collect())
    }
}

/// The next of `lanes` after `last`, going round.
pub(crate) fn next_after(lanes: LaneSet, last: Option<Lane>) -> Option<Lane> {
    let later = last.and_then(|last| (lanes - LaneSet::first(last.index() + 1)).lowest());
    later.or_else(|| lanes.lowest())
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn nothing_is_shared() {
        assert_eq!(schedule("round-robin", &["1 2", "1 2"]), "1:0 1:1 2:0 2:1");
    }
}
