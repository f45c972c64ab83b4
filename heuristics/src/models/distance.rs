//! `distance`: the lane that is furthest from the end of its function runs.
//!
//! No paper. The simulator of Milanez et al. (Parallel Computing 40, 2014) has a heuristic of this name; its rule is
//! not published, and this one is ours.
//!
//! Rule: the distance of a lane is its shortest path to the end of its function, counted in instructions over the
//! control-flow graph. Of the lanes with the highest call level, the one with the greatest distance runs; among equals
//! the smallest pc. All ready lanes at its pc run with it.
//!
//! It reconverges at the immediate post-dominator at the latest: every path from before it to the function's end leads
//! through it. So a lane that stands there is nearer to the end than any that still has to come. It needs one number
//! per block and no table of lanes. It fails where lanes of one loop are in different iterations: those that have left
//! wait, but those in the body pass each other. Like all rules of levels, it runs a function called from both arms
//! twice.
//!
//! With `placement=structured` or `nak` the distance is counted to the end of the iteration of the innermost loop that
//! the lanes have in common. A loop inside of that counts as one block, as long as its head. An iteration ends at the
//! loop's head, by whatever edge. Lanes that reach the head wait for those that are still in the loop, so the lanes of
//! each iteration meet. Lanes that left the loop wait behind it.
//!
//! *Limitation*: as that of `ipdom`.
//!
//! Worked example: `1 2b 3 4` and `1 2b 9b 3 4`: the end is 4 instructions from 1, 2 from 3 and 3 from 9. After 2, lane
//! 1 at 9 is further away than lane 0 at 3: 1, 2 (both), 9 (lane 1), 3, 4 (both).

use std::cmp::Reverse;

use crate::mechanisms::minimum::with_smallest;
use crate::{Choice, Entry, Family, Heuristic, LaneState, Placement, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "distance",
    family: Family::MinPc,
    rule: "At the highest call level, the lane runs whose shortest path to the end of its function is longest.",
    source: "ours; the name from Milanez et al. 2014",
    file: file!(),
    parameters: &[Placement::PARAMETER],
    needs_control_flow: true,
    runs_blocks: false,
    build: |settings, _, _| Box::new(Distance { placement: Placement::of(settings) }),
};

struct Distance {
    placement: Placement,
}

impl Heuristic for Distance {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        let flow = &warp.program().control_flow;
        let rank = |place| match self.placement {
            // The furthest first.
            Placement::Binary => u32::MAX - flow.distance_to_end(place),
            Placement::Structured | Placement::Nak => flow.turn_rank(place),
        };
        let key = |l: &LaneState| (Reverse(l.level), rank(l.place), l.pc);
        let (_, lanes) = with_smallest(warp, warp.ready(), key);
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
        // From 2 the end is 2 instructions away, though lane 2 takes a longer way; from 4 it is 4. At 7, as near as 2,
        // lane 0 waits.
        let lanes = ["1b 4b 6b 7b 8", "1b 2b 8", "1b 2b 4b 6b 7b 8"];
        assert_eq!(schedule("distance", &lanes), "1:0-2 4:0 6:0 2:1-2 4:2 6:2 7:0,2 8:0-2");
    }
    #[test]
    fn turns_of_a_loop_meet_under_structured_placement() {
        // The turn of lane 0 is over when lane 1 is at 2; lane 2 has left the loop for 9.
        let lanes = ["1b 5 6b 1b 2b 3b 9", "1b 2b 3b 1b 5 6b 9", "1b 2b 9"];
        assert_eq!(
            schedule("distance:placement=structured", &lanes),
            "1:0-2 2:1-2 5:0 3:1 6:0 1:0-1 2:0 5:1 3:0 6:1 9:0-2"
        );
    }
}
