//! `distance`: the lane that is furthest from the end of its function runs.
//!
//! No paper. The simulator of Milanez et al. (Parallel Computing 40, 2014) has a heuristic of this name; its rule is not published, and this
//! one is ours.
//!
//! Rule: of the lanes with the highest call level the one runs whose shortest way to where its function is left, counted in instructions over the
//! control-flow graph, is the longest; among equals the smallest pc. All ready lanes at its pc run with it.
//!
//! It reconverges at the immediate post-dominator at the latest: every way from before it to the function's end leads through it, so a lane that
//! stands there is nearer to the end than any that still has to come. It needs one number per block and no table of lanes. It fails where lanes
//! of one loop are in different rounds: those that have left wait, but those in the body pass each other; and like all rules of
//! levels it runs a function called from both arms twice.
//!
//! *Limitation*: as that of `ipdom`.
//!
//! Worked example: `1 2b 3 4` and `1 2b 9b 3 4`: the end is 4 instructions from 1, 2 from 3 and 3 from 9. After 2, lane 1 at 9 is further away than
//! lane 0 at 3: 1, 2 (both), 9 (lane 1), 3, 4 (both).

use std::cmp::Reverse;

use crate::minimum::with_smallest;
use crate::{Choice, Entry, Heuristic, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "distance",
    rule: "Of the highest call level, the lane runs whose shortest way to the end of its function is the longest.",
    source: "ours; the name from Milanez et al. 2014",
    file: file!(),
    parameters: &[],
    needs_control_flow: true,
    runs_blocks: false,
    build: |_, _, _| Box::new(Distance),
};

struct Distance;

impl Heuristic for Distance {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        let flow = &warp.program().control_flow;
        let (_, lanes) = with_smallest(warp, warp.ready(), |l| {
            (Reverse(l.level), Reverse(flow.distance_to_end(warp.segment(l.segment).place)), l.pc)
        });
        Choice::Run(lanes)
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn a_join_before_an_arm_is_reconverged() {
        assert_eq!(schedule("distance", &["1 2b 3 4", "1 2b 9b 3 4"]), "1:0-1 2:0-1 9:1 3:0-1 4:0-1");
    }

    #[test]
    fn lanes_that_leave_a_loop_wait_at_its_exit() {
        // The exit lies before the loop.
        let lanes = ["9 12b 9 12b 5", "9 12b 5"];
        assert_eq!(schedule("distance", &lanes), "9:0-1 12:0-1 9:0 12:0 5:0-1");
    }

    #[test]
    fn the_shortest_way_counts() {
        // From 2 the end is 2 instructions away, though lane 2 takes a longer way; from 4 it is 4. At 7, as near as 2, lane 0 waits.
        let lanes = ["1b 4b 6b 7b 8", "1b 2b 8", "1b 2b 4b 6b 7b 8"];
        assert_eq!(schedule("distance", &lanes), "1:0-2 4:0 6:0 2:1-2 4:2 6:2 7:0,2 8:0-2");
    }
}
