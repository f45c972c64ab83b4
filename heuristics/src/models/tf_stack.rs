//! `tf-stack`: thread frontiers with a sorted stack.
//!
//! Diamos, Ashbaugh, Maiyuran, Kerr, Wu and Yalamanchili, *SIMD re-convergence at thread frontiers* (MICRO 2011).
//!
//! Rule: a table per frame says which lanes stand where. In the frame opened last, the entry runs whose block comes
//! first in the topological order of its function's graph (loops in a row, back edges ignored). The targets of its
//! branch become entries, and lanes that reach one pc in one frame become one entry.
//!
//! It reconverges at the earliest block at which lanes can meet, wherever the code is laid out. Where control flow is
//! unstructured (short-circuit conditions, breaks), that is long before the post-dominator. It fails to share a
//! function called from both arms. It deadlocks where lanes spin on a lock that a lane further on holds: the spin loop
//! comes first. Lanes that wait at a barrier are passed over.
//!
//! *Limitation*: the order comes from the code that the replayed lanes ran, as in `ipdom`.
//!
//! Worked example: `if (a || b) X; Y` with a at 1, b at 3, X at 5, Y at 8. `1b 5 8`, `1b 3b 5 8` and `1b 3b 8` give
//! 1 (all), 3 (lanes 1 and 2), 5 (lanes 0 and 1), 8 (all), where `ipdom` fetches 5 twice.

use crate::mechanisms::frontier;
use crate::{Choice, Entry, Family, Heuristic, LaneSet, Lead, Order, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "tf-stack",
    family: Family::Frontiers,
    rule: "Thread frontiers: in the innermost frame the block that comes first in topological order runs.",
    source: "Diamos et al. 2011",
    file: file!(),
    parameters: &[],
    needs_control_flow: true,
    runs_blocks: false,
    build: |_, _, _| Box::new(TfStack),
};

/// Frames are opened by the innermost one and run to their end before it goes on, so there is one per call level, and
/// the lanes' own states are the tables.
struct TfStack;

impl Heuristic for TfStack {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        match frontier::first(warp) {
            Ok(lane) => {
                let level = warp.lane(lane).level;
                Choice::Run(warp.mates(lane).iter().filter(|l| warp.lane(*l).level == level).collect())
            }
            Err(deadlock) => deadlock,
        }
    }

    fn runs_on(&self, warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        lead.restart(Order::LevelAndPriority);
        let others = (warp.ready() - lanes) | warp.waiting_for_lock();
        others.iter().for_each(|lane| warp.stop_behind(lane, lead));
        true
    }

    fn stays_together(&self, warp: &WarpView) -> bool {
        let mut levels = warp.live().iter().map(|l| warp.lane(l).level);
        let first = levels.next();
        levels.all(|level| Some(level) == first)
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn lanes_meet_before_the_post_dominator() {
        let lanes = ["1b 5 8", "1b 3b 5 8", "1b 3b 8"];
        assert_eq!(schedule("tf-stack", &lanes), "1:0-2 3:1-2 5:0-1 8:0-2");
        assert_eq!(schedule("ipdom", &lanes).matches("5:").count(), 2);
    }

    #[test]
    fn a_join_before_an_arm_is_reconverged() {
        assert_eq!(schedule("tf-stack", &["1 2b 3 4", "1 2b 9b 3 4"]), "1:0-1 2:0-1 9:1 3:0-1 4:0-1");
    }

    #[test]
    fn frames_of_a_recursive_function_do_not_share() {
        // Both lanes stand at 20, lane 0 in the inner frame of a call to itself.
        let lanes = ["1c 20 21b 22c 20 21b 23r 23r 2", "1c 20 21b 24 23r 2"];
        assert_eq!(schedule("tf-stack", &lanes), "1:0-1 20:0-1 21:0-1 22:0 20:0 21:0 23:0 24:1 23:0-1 2:0-1");
    }
}
