//! `lwm`: large warps, one SIMT stack for the lanes of several warps, packed again at each fetch.
//!
//! Narasiman, Shebanow, Lee, Miftakhutdinov, Mutlu and Patt, *Improving GPU performance via large warps and two-level
//! warp scheduling* (MICRO 2011).
//!
//! Rule: a block of K warps of W lanes is one large warp with one stack, which works as that of `ipdom`. At each
//! instruction its active lanes are packed into sub-warps, at most one lane of each home in a sub-warp; each sub-warp
//! is a fetch. So an instruction of the large warp takes as many fetches as the largest number of active lanes that
//! have one home. The sub-warps run one after another, a piece of a block each; this changes the order of fetches and
//! not their number.
//!
//! It reconverges where `ipdom` does, for all warps at once, and needs no more fetches than `tbc`, which packs at
//! branches only. It fails where active lanes have the same homes, and where `ipdom` does. It deadlocks as `ipdom`
//! does, across warps too.
//!
//! *Limitation*: as that of `ipdom`. The two-level scheduling of the paper is about time, which is not modelled.
//!
//! Worked example: two warps of two lanes, `1b 2 3`, `1b`, `1b` and `1b 2 3`: 1 (lanes 0 and 1), 1 (2 and 3), then the
//! others have ended, and lanes 0 and 3 fill one sub-warp: 2 (0 and 3), 3 (0 and 3). `tbc` keeps to its warps and makes
//! 6 fetches of it.

use crate::mechanisms::block_stack::BlockStack;
use crate::mechanisms::stack::Next;
use crate::{Entry, Family, LaneSet, Placement, Seats};

pub(crate) const ENTRY: Entry = Entry {
    name: "lwm",
    family: Family::SeveralWarps,
    rule: "One SIMT stack per block of warps; at each instruction the active lanes are packed into as few fetches as \
         their home lanes allow.",
    source: "Narasiman et al. 2011",
    file: file!(),
    parameters: &[Placement::PARAMETER],
    needs_control_flow: true,
    runs_blocks: true,
    build: |settings, lanes, _| Box::new(BlockStack::new(lanes, Placement::of(settings), packed)),
};

fn packed(next: &Next, seats: &Seats) -> Vec<LaneSet> {
    seats.pack(next.lanes)
}

#[cfg(test)]
mod tests {
    use crate::example::schedule_block;

    #[test]
    fn lanes_that_are_left_are_packed_at_once() {
        let lanes = ["1b 2 3", "1b", "1b", "1b 2 3"];
        assert_eq!(schedule_block("lwm", 2, &lanes), "1:0-1 1:2-3 2:0,3 3:0,3");
        assert_eq!(schedule_block("tbc", 2, &lanes), "1:0-1 1:2-3 2:0 2:3 3:0 3:3");
    }

    #[test]
    fn an_instruction_takes_as_many_fetches_as_lanes_have_one_home() {
        // At 2 stand lanes 0, 2 and 4 of home 0 and lane 1 of home 1.
        let lanes = ["1b 2b 5", "1b 2b 5", "1b 2b 5", "1b 5", "1b 2b 5", "1b 5"];
        let fetches = "1:0-1 1:2-3 1:4-5 2:0-1 2:2 2:4 5:0-1 5:2-3 5:4-5";
        assert_eq!(schedule_block("lwm", 2, &lanes), fetches);
    }
}
