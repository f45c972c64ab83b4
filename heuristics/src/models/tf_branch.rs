//! `tf-branch`: thread frontiers with a pc per lane and conservative branches.
//!
//! Diamos, Ashbaugh, Maiyuran, Kerr, Wu and Yalamanchili, *SIMD re-convergence at thread frontiers* (MICRO 2011).
//!
//! Rule: every lane has a pc, and the lanes at the warp's pc are active. When a block ends, the warp goes to the first
//! block of the thread frontier, in topological order; the lanes in the frame opened last go before their callers.
//! Lanes at the same pc run together, in whatever frame.
//!
//! It reconverges as `tf-stack` does, and also where lanes stand at one pc in different frames of a recursion. It
//! fails, and deadlocks, where `tf-stack` does. The hardware does not know in which blocks of the frontier lanes really
//! stand, so it goes through all blocks up to the next one with a lane. A block that is fetched in this way for no lane
//! at all counts in `empty_fetches` with all its instructions, and not among the fetches.
//!
//! *Limitation*: the order comes from the code that the replayed lanes ran, as in `ipdom`. When a function has
//! returned, the warp goes through what is left of its frontier before its caller.
//!
//! Worked example: a function that calls itself once for lane 0, `1c 20b 22c 20b 23r 23r 2` and `1c 20b 24 23r 2`: 1,
//! 20 (both), 22, 20, 23 (lane 0), 24 (lane 1), 23 (both), 2 (both). Empty fetches: `1b 2b 4b 1b 2b 4b 9` and
//! `1b 3 4b 1b 2b 4b 9` go twice round a loop with two arms, 2 and 3. In the second iteration both take 2. Lanes might
//! stand at 3, so it is fetched for nobody before 4: 1 empty fetch.

use rustc_hash::FxHashMap;

use crate::mechanisms::frontier;
use crate::{Choice, ControlFlow, Entry, Family, Heuristic, LaneSet, Lead, Order, PlaceId, Tally, Together, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "tf-branch",
    family: Family::Frontiers,
    rule: "Thread frontiers with a pc per lane: as tf-stack, but lanes share a pc across frames.",
    source: "Diamos et al. 2011",
    file: file!(),
    parameters: &[],
    needs_control_flow: true,
    runs_blocks: false,
    build: |_, _, _| Box::<TfBranch>::default(),
};

#[derive(Default)]
struct TfBranch {
    empty_fetches: u64,
    /// By frame that is open: the place that it ran last.
    frames: Vec<PlaceId>,
    /// By place and the next one of its frame where lanes stood: the empty fetches between.
    between: FxHashMap<(PlaceId, PlaceId), u64>,
}

impl TfBranch {
    /// The warp goes to this place, at this call level.
    fn goes_to(&mut self, place: PlaceId, level: u32, flow: &ControlFlow) {
        let level = level as usize;
        while self.frames.len() > level {
            let left = self.frames.pop();
            self.empty_fetches += left.map_or(0, |left| empty_fetches(flow, left, None));
        }
        if self.frames.len() == level {
            let from = std::mem::replace(&mut self.frames[level - 1], place);
            self.empty_fetches +=
                *self.between.entry((from, place)).or_insert_with(|| empty_fetches(flow, from, Some(place)));
        } else {
            self.frames.resize(level, place);
        }
    }
}

/// The instructions of the blocks that are gone through after this one until the next at which lanes stand, or until
/// the frame is left.
fn empty_fetches(flow: &ControlFlow, from: PlaceId, until: Option<PlaceId>) -> u64 {
    let (mut at, mut fetches) = (from, 0);
    while let Some(next) = flow.frontier(at).next() {
        if until.is_some_and(|until| flow.priority(next) >= flow.priority(until)) {
            break;
        }
        fetches += u64::from(flow.length(next));
        at = next;
    }
    fetches
}

impl Heuristic for TfBranch {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        match frontier::first(warp) {
            Ok(lane) => {
                let state = warp.lane(lane);
                self.goes_to(state.place, state.level, &warp.program().control_flow);
                Choice::Run(warp.mates(lane))
            }
            Err(deadlock) => deadlock,
        }
    }

    fn runs_on(&self, warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        lead.restart(Order::LevelAndPriority);
        lead.tell_run();
        // Where others stand they run with the chosen ones, whatever their frames.
        lead.stop_at_others();
        let others = (warp.ready() - lanes) | warp.waiting_for_lock();
        others.iter().for_each(|lane| warp.stop_behind(lane, lead));
        true
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        true
    }

    fn ran(&mut self, run: &Together) {
        // Where it was chosen it has been gone to.
        for (segment, level) in run.run.iter().zip(run.levels()).skip(run.chosen.into()) {
            self.goes_to(run.segments[*segment].place, level, run.control_flow);
        }
    }

    fn tally(&self) -> Tally {
        Tally { empty_fetches: Some(self.empty_fetches), ..Tally::default() }
    }
}

#[cfg(test)]
mod tests {
    use crate::example::{schedule, tally};

    #[test]
    fn a_block_in_which_lanes_might_stand_is_fetched_for_nobody() {
        let lanes = ["1b 2b 4b 1b 2b 4b 9", "1b 3 4b 1b 2b 4b 9"];
        assert_eq!(schedule("tf-branch", &lanes), "1:0-1 2:0 3:1 4:0-1 1:0-1 2:0-1 4:0-1 9:0-1");
        assert_eq!(tally("tf-branch", &lanes).empty_fetches, Some(1));
    }

    #[test]
    fn straight_code_has_no_empty_fetches() {
        assert_eq!(tally("tf-branch", &["1 2c 20 21r 3", "1 2c 20 21r 3"]).empty_fetches, Some(0));
    }

    #[test]
    fn a_recursion_is_finished_before_its_caller_goes_on() {
        let lanes = ["1c 20b 22c 20b 23r 23r 2", "1c 20b 24 23r 2"];
        assert_eq!(schedule("tf-branch", &lanes), "1:0-1 20:0-1 22:0 20:0 23:0 24:1 23:0-1 2:0-1");
    }

    #[test]
    fn lanes_of_different_frames_share_a_pc() {
        // Lane 0 reaches 23 in the inner frame when lane 1 stands there in the outer one.
        let lanes = ["1c 20b 22c 20b 23r 23r 2", "1c 20b 23r 2"];
        assert_eq!(schedule("tf-branch", &lanes), "1:0-1 20:0-1 22:0 20:0 23:0-1 23:0 2:0-1");
        assert_eq!(schedule("tf-stack", &lanes), "1:0-1 20:0-1 22:0 20:0 23:0 23:0-1 2:0-1");
    }
}
