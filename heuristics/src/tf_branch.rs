//! `tf-branch`: thread frontiers with a pc per lane and conservative branches.
//!
//! Diamos, Ashbaugh, Maiyuran, Kerr, Wu and Yalamanchili, *SIMD re-convergence at thread frontiers* (MICRO 2011).
//!
//! Rule: every lane has a pc, and the lanes at the warp's pc are active. When a block ends, the warp goes to the block of the thread frontier
//! that comes first in topological order; the lanes in the frame opened last go before their callers. Lanes at the same pc
//! run together, in whatever frame.
//!
//! It reconverges as `tf-stack` does, and also where lanes stand at one pc in different frames of a recursion. The
//! hardware does not know in which blocks of the frontier lanes really stand, and may go through some for no lane at all; such
//! empty fetches are not among the fetches counted here. It fails, and deadlocks, where `tf-stack` does.
//!
//! *Limitation*: the order comes from the code that the replayed lanes ran, as in `ipdom`.
//!
//! Worked example: a function that calls itself once for lane 0, `1c 20b 22c 20b 23r 23r 2` and `1c 20b 24 23r 2`: 1, 20 (both), 22, 20,
//! 23 (lane 0), 24 (lane 1), 23 (both), 2 (both).

use crate::{Choice, Entry, Heuristic, WarpView, frontier};

pub(crate) const ENTRY: Entry = Entry {
    name: "tf-branch",
    rule: "Thread frontiers with a pc per lane: as tf-stack, but lanes share a pc across frames.",
    source: "Diamos et al. 2011",
    file: file!(),
    parameters: &[],
    needs_control_flow: true,
    runs_blocks: false,
    build: |_, _, _| Box::new(TfBranch),
};

struct TfBranch;

impl Heuristic for TfBranch {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        match frontier::first(warp) {
            Ok(lane) => Choice::Run(warp.mates(lane)),
            Err(deadlock) => deadlock,
        }
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn a_recursion_is_finished_before_its_caller_goes_on() {
        let lanes = ["1c 20b 22c 20b 23r 23r 2", "1c 20b 24 23r 2"];
        assert_eq!(schedule("tf-branch", &lanes), "1:0-1 20:0-1 22:0 20:0 23:0 24:1 23:0-1 2:0-1");
    }

    #[test]
    fn lanes_of_different_frames_share_a_pc() {
        // Lane 0 comes to 23 in the inner frame when lane 1 stands there in the outer one.
        let lanes = ["1c 20b 22c 20b 23r 23r 2", "1c 20b 23r 2"];
        assert_eq!(schedule("tf-branch", &lanes), "1:0-1 20:0-1 22:0 20:0 23:0-1 23:0 2:0-1");
        assert_eq!(schedule("tf-stack", &lanes), "1:0-1 20:0-1 22:0 20:0 23:0 23:0-1 2:0-1");
    }
}
