//! `wave`: one wave that sweeps over the blocks in order; lanes wait where it will come.
//!
//! AMD's wave transform: a pass of LLVM's backend for its GPUs, `AMDGPUWaveTransform.cpp` and before that
//! `GCNWaveTransform.cpp`, which runs late in code generation.
//!
//! Rule: the blocks of a function are in reverse postorder, with the blocks of each loop in a row. At a branch where
//! lanes part, the successor that comes first in this order is the *primary* one; the wave goes on there. The other
//! lanes are put into the *rejoin mask* of the other successor, the *secondary* one, and join the wave when it gets
//! there. When a block ends, the wave goes to the next block in the order at which lanes stand. Where none is left in
//! the loop, it goes back to the loop's head, if lanes wait there for another iteration; otherwise it leaves the loop.
//! A function that is called runs to its end first.
//!
//! It reconverges at the earliest block at which lanes can meet, as `tf-stack` does, and also at the end of each
//! iteration of a loop: a lane that goes back to the head early waits for the others, where `tf-stack` would run it
//! ahead. It fails to share a function called from both arms, and it deadlocks as `tf-stack` does: the wave never
//! leaves a loop in which a lane spins on a lock that a lane further on holds. Lanes that wait at a barrier of the
//! program are passed over.
//!
//! No lane is lost. In this order every edge leads forward, or from a block of a loop to its head, also where control
//! can enter the loop elsewhere. The wave goes to the first block ahead at which lanes stand. So all that wait are
//! ahead of it, or at the heads of loops that it is in. It leaves a loop only when nobody stands in it, and each step
//! runs an instruction of some lane.
//!
//! *Limitation*: the order comes from the code that the replayed lanes ran, as in `ipdom`. The blocks that LLVM inserts
//! so that each branch has a secondary successor, and the instructions that change the mask, are not counted.
//!
//! Worked example: a loop whose iteration is 1, then 2, or 3 and 4, and goes back to 1 or on to 9:
//! `1b 2b 1b 3 4b 9` and `1b 3 4b 1b 2b 9`: 1 (both), 2 (lane 0), which waits at 1; 3, 4 (lane 1); the
//! second iteration: 1 (both), 2 (lane 1), 3, 4 (lane 0), 9 (both). `tf-stack` would run 1 for lane 0 alone.

use std::cmp::Reverse;

use crate::{Choice, Entry, Family, Heuristic, Lane, PlaceId, Together, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "wave",
    family: Family::Frontiers,
    rule: "One wave passes over the blocks in order, through a loop once per iteration; lanes wait in rejoin masks \
         where the wave will pass.",
    source: "LLVM's wave transform for AMD's GPUs",
    file: file!(),
    parameters: &[crate::mechanisms::predication::PARAMETER],
    needs_control_flow: true,
    runs_blocks: false,
    build: |_, _, _| Box::<Wave>::default(),
};

/// The rejoin masks are the lanes' own states: a lane that the wave is not at waits in that of the block where it
/// stands.
#[derive(Default)]
struct Wave {
    /// By frame that is open, the outermost first: the place that the wave ran last, where it ran in it.
    at: Vec<Option<PlaceId>>,
}

impl Wave {
    fn comes_to(&mut self, place: PlaceId, level: u32) {
        self.at.resize(level as usize, None);
        if let Some(at) = self.at.last_mut() {
            *at = Some(place);
        }
    }

    /// When the wave reaches the lane: the smallest goes first. Frames opened last, then what is ahead in the
    /// innermost loop, then its head, and so on from the inside out.
    fn key(&self, warp: &WarpView, lane: Lane, spins: bool) -> (Reverse<u32>, Reverse<u32>, bool, u32) {
        let state = warp.lane(lane);
        let place = state.place;
        let flow = &warp.program().control_flow;
        let at = self.at.get((state.level as usize).wrapping_sub(1)).copied().flatten();
        let (loops, behind) = match at {
            Some(at) => (flow.loops_around_both(at, place), flow.priority(place) <= flow.priority(at)),
            None => (0, false),
        };
        // Who spins goes round a loop that the wave does not leave.
        (Reverse(state.level), Reverse(loops), behind && !spins, flow.priority(place))
    }
}

impl Heuristic for Wave {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        let key = |lane: &Lane, spins| (self.key(warp, *lane, spins), *lane);
        let first = warp.ready().iter().map(|lane| key(&lane, false)).min();
        let spinning = warp.waiting_for_lock().iter().map(|lane| key(&lane, true)).min();
        let (key_of_first, lane) = first.expect("a choice is asked for only while a lane is ready");
        if let Some((spins, _)) = spinning.filter(|(spins, _)| *spins <= key_of_first) {
            let with = warp.waiting_for_lock().iter().filter(|lane| self.key(warp, *lane, true) == spins);
            return Choice::Deadlock(with.collect());
        }
        let state = warp.lane(lane);
        self.comes_to(state.place, state.level);
        Choice::Run(warp.mates(lane).iter().filter(|l| warp.lane(*l).level == state.level).collect())
    }

    fn stays_together(&self, warp: &WarpView) -> bool {
        let mut levels = warp.live().iter().map(|l| warp.lane(l).level);
        let first = levels.next();
        levels.all(|level| Some(level) == first)
    }

    fn ran(&mut self, run: &Together) {
        for (segment, level) in run.run.iter().zip(run.levels()) {
            self.comes_to(run.segments[*segment].place, level);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn turns_meet_at_the_head_of_their_loop() {
        let lanes = ["1b 2b 1b 3 4b 9", "1b 3 4b 1b 2b 9"];
        assert_eq!(schedule("wave", &lanes), "1:0-1 2:0 3:1 4:1 1:0-1 2:1 3:0 4:0 9:0-1");
        assert_eq!(schedule("tf-stack", &lanes).matches("1:").count(), 3);
    }

    #[test]
    fn lanes_meet_before_the_post_dominator() {
        assert_eq!(schedule("wave", &["1b 5 8", "1b 3b 5 8", "1b 3b 8"]), "1:0-2 3:1-2 5:0-1 8:0-2");
    }

    #[test]
    fn a_loop_is_left_when_nobody_is_left_in_it() {
        // The exit lies before the loop; an inner loop goes round for lane 0 alone.
        let lanes = ["9 12b 13b 13b 13b 9 12b 5", "9 12b 13b 9 12b 5", "9 12b 5"];
        assert_eq!(schedule("wave", &lanes), "9:0-2 12:0-2 13:0-1 13:0 13:0 9:0-1 12:0-1 5:0-2");
    }

    #[test]
    fn a_loop_that_is_entered_at_two_places_loses_nobody() {
        // Its head is 3, by which the order comes in first: lane 0 waits at 2 until the wave comes there.
        let lanes = ["1b 2b 3b 2b 3b 9", "1b 3b 2b 3b 9", "1b 3b 9"];
        assert_eq!(schedule("wave", &lanes), "1:0-2 3:1-2 2:0-1 3:0-1 2:0 3:0 9:0-2");
    }

    #[test]
    fn frames_of_a_recursive_function_do_not_share() {
        let lanes = ["1c 20 21b 22c 20 21b 23r 23r 2", "1c 20 21b 24 23r 2"];
        assert_eq!(schedule("wave", &lanes), "1:0-1 20:0-1 21:0-1 22:0 20:0 21:0 23:0 24:1 23:0-1 2:0-1");
    }
}
