//! `tbc`: thread block compaction, a SIMT stack per block of warps whose branches repack the lanes.
//!
//! Fung and Aamodt, *Thread block compaction for efficient SIMT control flow* (HPCA 2011).
//!
//! Rule: the warps of a block share one stack, which works as that of `ipdom`: its entries hold lanes of all of them.
//! Where a branch parts an entry's lanes, each side is compacted into as few warps as its lanes' homes allow. An entry
//! keeps its warps until it is popped. At the post-dominator the warps from before the branch go on, in the end those
//! that the threads were put into at first. The warps of an entry run one after another, a piece of a block each.
//!
//! It reconverges where `ipdom` does, for all warps at once, and needs no more fetches where lanes end together: lanes
//! of different warps that took the same side fill each other's gaps. It fails where `ipdom` does, where lanes of one
//! home take the same side, and where a warp's lanes end or wait, so that its gaps stay open until the next branch. It
//! deadlocks as `ipdom` does, across warps too.
//!
//! *Limitation*: as that of `ipdom`.
//!
//! Worked example: two warps of two lanes, `1b 2b 5`, `1b 4 5`, `1b 4 5` and `1b 2b 5`: 1 (lanes 0 and 1), 1 (2 and 3),
//! 4 (1 and 2, whose homes are 1 and 0), 2 (0 and 3), and at 5 the first warps again: 5 (0 and 1), 5 (2 and 3). 6
//! fetches, `ipdom` makes 8.

use crate::mechanisms::block_stack::BlockStack;
use crate::mechanisms::stack::Next;
use crate::{Entry, Family, LaneSet, Placement, Seats};

pub(crate) const ENTRY: Entry = Entry {
    name: "tbc",
    family: Family::SeveralWarps,
    rule: "One SIMT stack per block of warps; each side of a branch is compacted into as few warps as the home lanes \
         allow.",
    source: "Fung and Aamodt 2011",
    file: file!(),
    parameters: &[Placement::PARAMETER],
    needs_control_flow: true,
    runs_blocks: true,
    build: |settings, lanes, _| Box::new(BlockStack::new(lanes, Placement::of(settings), in_warps_of_entry)),
};

/// A fetch for each of the entry's warps that has a lane to run.
fn in_warps_of_entry(next: &Next, seats: &Seats) -> Vec<LaneSet> {
    let warps = next.of.map_or_else(|| seats.warps().to_vec(), |lanes| seats.pack(lanes));
    warps.into_iter().map(|warp| warp & next.lanes).filter(|lanes| !lanes.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use crate::example::{schedule, schedule_block};

    #[test]
    fn sides_are_compacted_and_the_first_warps_return() {
        let lanes = ["1b 2b 5", "1b 4 5", "1b 4 5", "1b 2b 5"];
        assert_eq!(schedule_block("tbc", 2, &lanes), "1:0-1 1:2-3 4:1-2 2:0,3 5:0-1 5:2-3");
        // Each warp alone.
        assert_eq!(schedule("ipdom", &lanes[..2]), "1:0-1 4:1 2:0 5:0-1");
    }

    #[test]
    fn lanes_of_one_home_cannot_share() {
        let lanes = ["1b 2b 5", "1b 4 5", "1b 2b 5", "1b 4 5"];
        assert_eq!(schedule_block("tbc", 2, &lanes), "1:0-1 1:2-3 4:1 4:3 2:0 2:2 5:0-1 5:2-3");
    }

    #[test]
    fn those_that_go_round_again_are_compacted() {
        // After the first round lane 1 leaves the loop; lanes 0 and 3 then share a warp.
        let lanes = ["1 2b 1 2b 5", "1 2b 5", "1 2b 5", "1 2b 1 2b 5"];
        assert_eq!(schedule_block("tbc", 2, &lanes), "1:0-1 1:2-3 2:0-1 2:2-3 1:0,3 2:0,3 5:0-1 5:2-3");
        let lanes = ["1 2b 1 2b 1 2b 5", "1 2b 5", "1 2b 1 2b 5", "1 2b 1 2b 1 2b 5"];
        let fetches = "1:0-1 1:2-3 2:0-1 2:2-3 1:0,3 1:2 2:0,3 2:2 1:0,3 2:0,3 5:0-1 5:2-3";
        assert_eq!(schedule_block("tbc", 2, &lanes), fetches);
        // At the third round lanes 0 and 3 are left of two warps, {0, 1} and {3}.
        let lanes = ["1 2b 1 2b 1 2b 5", "1 2b 1 2b 5", "1 2b 5", "1 2b 1 2b 1 2b 5"];
        let fetches = "1:0-1 1:2-3 2:0-1 2:2-3 1:0-1 1:3 2:0-1 2:3 1:0,3 2:0,3 5:0-1 5:2-3";
        assert_eq!(schedule_block("tbc", 2, &lanes), fetches);
    }

    #[test]
    fn a_nested_branch_compacts_anew_and_its_entry_keeps_its_warps() {
        // Lanes 0, 3, 5 go to 2 in the warps {0, 3} and {5}; at 3 lanes 0 and 5 share a warp, and at 6 the two warps
        // return.
        let (in_both, in_outer, in_none) = ("1b 2b 3b 6b 9", "1b 2b 4 6b 9", "1b 8 9");
        let lanes = [in_both, in_none, in_none, in_outer, in_none, in_both];
        let fetches = "1:0-1 1:2-3 1:4-5 8:1-2 8:4 2:0,3 2:5 4:3 3:0,5 6:0,3 6:5 9:0-1 9:2-3 9:4-5";
        assert_eq!(schedule_block("tbc", 2, &lanes), fetches);
    }
}
