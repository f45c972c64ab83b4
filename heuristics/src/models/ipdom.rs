//! `ipdom`: the SIMT stack, reconvergence at immediate post-dominators.
//!
//! Fung, Sham, Yuan and Aamodt, *Dynamic warp formation and scheduling for efficient GPU control flow* (MICRO 2007),
//! section 2; GPGPU-Sim.
//!
//! Rule: the model keeps a stack of entries, each with lanes and the pc at which they reconverge (rpc). The top entry
//! runs. When its lanes disagree on the next pc, the entry waits at R, the branch's immediate post-dominator in its
//! function (the function's return, if there is none). Each next pc becomes an entry above it with rpc R, the
//! fall-through first, then ascending; the last runs first. An entry whose rpc is R already is replaced, not kept.
//! Lanes that reach their rpc in the frame of the branch wait below.
//!
//! It reconverges at the first place that every path from the branch must pass. It fails where paths meet earlier
//! (short-circuit conditions, breaks, calls of one function from both arms). It deadlocks where lanes of the top entry
//! wait for a lock: they spin, and the lane that has the lock waits for them to leave the loop with it (ElTantawy and
//! Aamodt, *MIMD synchronization on SIMT architectures*, MICRO 2016). Where the top entry waits at a barrier, the next
//! entry below runs, and its lanes part and reconverge there.
//!
//! With `placement=structured` lanes wait where compilers for GPUs let them. Those that stay in a loop wait at the end
//! of each iteration, those that leave it wait behind the loop. With `placement=nak` lanes also wait behind the arms of
//! an `if` in which others continue or return.
//!
//! *Limitation*: post-dominators come from the code that the replayed lanes ran. The side of a branch that none of them
//! took counts where lanes ran the code there. Code that none ran does not count, nor do targets of indirect jumps that
//! none took.
//!
//! Worked example: `1 2b 4 6b 8` and `1 2b 6b 8`: lane 1 skips 4. The post-dominator of 2 is 6, so lane 1 waits there:
//! 1, 2 (both), 4 (lane 0), 6, 8 (both).

use crate::mechanisms::predication;
use crate::mechanisms::stack::Stack;
use crate::warp::reconvergence::Branch;
use crate::{Choice, Entry, Family, Heuristic, LaneSet, Lead, Placement, Ran, Tally, Together, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "ipdom",
    family: Family::Stack,
    rule: "SIMT stack: lanes that part wait for each other at the branch's immediate post-dominator.",
    source: "Fung et al. 2007",
    file: file!(),
    parameters: &[Placement::PARAMETER, predication::PARAMETER],
    needs_control_flow: true,
    runs_blocks: false,
    build: |settings, lanes, _| Box::new(Ipdom { stack: Stack::new(lanes, Placement::of(settings)) }),
};

struct Ipdom {
    stack: Stack,
}

impl Heuristic for Ipdom {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        match self.stack.next(warp) {
            Ok(next) => Choice::Run(next.lanes),
            Err(deadlock) => deadlock,
        }
    }

    fn executed(&mut self, warp: &WarpView, ran: &Ran) {
        self.stack.ran(Branch::of(warp, ran));
    }

    fn runs_on(&self, _warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        self.stack.runs_on(lanes, lead)
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        self.stack.is_whole()
    }

    fn ran(&mut self, run: &Together) {
        self.stack.ran(Branch::of_run(run));
    }

    fn tally(&self) -> Tally {
        Tally { stack_depth: Some(self.stack.deepest()), ..Tally::default() }
    }
}

#[cfg(test)]
mod tests {
    use crate::example::{schedule, tally};

    #[test]
    fn the_stack_is_as_deep_as_lanes_parted_without_a_join() {
        let depth = |lanes: &[&str]| tally("ipdom", lanes).stack_depth;
        assert_eq!(depth(&["1 2 3", "1 2 3"]), Some(1));
        // Both arms stand above the bottom. 6 is done when 2 runs; its lanes part again and meet at 5, before 8.
        assert_eq!(depth(&["1b 4 8", "1b 6 8"]), Some(3));
        assert_eq!(depth(&["1b 2b 3 5 8", "1b 2b 4 5 8", "1b 6 8"]), Some(4));
        // if (1 || 2) 7; 8: who reaches 7 by 2 waits for 8 above those that come there by 1, and parts once more.
        assert_eq!(depth(&["1b 7 8", "1b 2b 7 8", "1b 2b 8"]), Some(3));
    }

    #[test]
    fn lanes_wait_at_the_post_dominator() {
        assert_eq!(schedule("ipdom", &["1 2b 4 6b 8", "1 2b 6b 8"]), "1:0-1 2:0-1 4:0 6:0-1 8:0-1");
    }

    #[test]
    fn a_join_before_an_arm_is_reconverged() {
        assert_eq!(schedule("ipdom", &["1 2b 3 4", "1 2b 9b 3 4"]), "1:0-1 2:0-1 9:1 3:0-1 4:0-1");
    }

    #[test]
    fn lanes_that_leave_a_loop_wait_at_its_exit() {
        let lanes = ["1 2b 1 2b 5", "1 2b 5"];
        assert_eq!(schedule("ipdom", &lanes), "1:0-1 2:0-1 1:0 2:0 5:0-1");
    }

    /// A loop whose end is doubled: an iteration is 1, then 2 and 3 or 5 and 6; 3 and 6 go back to 1 or leave for 9.
    const DOUBLED: [&str; 3] = ["1b 2 3b 1b 2 3b 9", "1b 5 6b 1b 5 6b 9", "1b 5 6b 9"];

    #[test]
    fn turns_of_a_loop_whose_end_is_doubled_meet_under_structured_placement() {
        let both = &DOUBLED[..2];
        assert_eq!(schedule("ipdom", both), "1:0-1 5:1 6:1 1:1 5:1 6:1 2:0 3:0 1:0 2:0 3:0 9:0-1");
        let structured = "1:0-1 5:1 6:1 2:0 3:0 1:0-1 5:1 6:1 2:0 3:0 9:0-1";
        assert_eq!(schedule("ipdom:placement=structured", both), structured);
        assert_eq!(schedule("barrier:placement=structured", both), "1:0-1 2:0 3:0 5:1 6:1 1:0-1 2:0 3:0 5:1 6:1 9:0-1");
    }

    #[test]
    fn who_leaves_a_loop_waits_behind_it_and_is_not_waited_for_inside() {
        let all = &DOUBLED[..];
        let structured = "1:0-2 5:1-2 6:1-2 2:0 3:0 1:0-1 5:1 6:1 2:0 3:0 9:0-2";
        assert_eq!(schedule("ipdom:placement=structured", all), structured);
        let paths = "1:0-2 2:0 3:0 5:1-2 6:1-2 1:0-1 2:0 3:0 5:1 6:1 9:0-2";
        assert_eq!(schedule("multi-path:placement=structured", all), paths);
        assert_eq!(schedule("dual-path:placement=structured", all), paths);
        let barriers = "1:0-2 2:0 3:0 5:1-2 6:1-2 1:0-1 2:0 3:0 5:1 6:1 9:0-2";
        assert_eq!(schedule("barrier:placement=structured", all), barriers);
    }

    #[test]
    fn who_continues_is_not_waited_for_behind_the_if_around_it() {
        // while (…) { 1; if (1) { 2; if (2) continue; 3 } 5; 6 } 9: lane 0 continues, 1 runs 3, 2 skips the arm.
        let lanes = ["1b 2b 1b 5 6b 9", "1b 2b 3 5 6b 1b 5 6b 9", "1b 5 6b 1b 5 6b 9"];
        // The way by `continue` goes past 5, where the two others meet: not the join of all, under either placement.
        let nak = "1:0-2 2:0-1 3:1 5:1-2 6:1-2 1:0-2 5:0-2 6:0-2 9:0-2";
        for model in
            ["ipdom:placement=structured", "ipdom:placement=nak", "hanoi:placement=structured", "hanoi:placement=nak"]
        {
            assert_eq!(schedule(model, &lanes), nak, "{model}");
        }
    }

    #[test]
    fn an_early_return_reconverges_after_the_call() {
        let lanes = ["1c 20 21b 22r 2", "1c 20 21b 30 31r 2"];
        assert_eq!(schedule("ipdom", &lanes), "1:0-1 20:0-1 21:0-1 30:1 31:1 22:0 2:0-1");
    }

    #[test]
    fn a_recursive_call_does_not_reconverge_in_the_wrong_frame() {
        // Lane 0 calls itself once; 23 is the post-dominator of 21 in each frame.
        let lanes = ["1c 20 21b 22c 20 21b 23r 23r 2", "1c 20 21b 23r 2"];
        assert_eq!(schedule("ipdom", &lanes), "1:0-1 20:0-1 21:0-1 22:0 20:0 21:0 23:0 23:0-1 2:0-1");
    }
}
