//! `minsp-pc`: deepest stack first, then smallest pc.
//!
//! Collange, *Stack-less SIMT reconvergence at low cost* (ENS Lyon, 2011); Milanez et al., *Thread scheduling and
//! memory coalescing for dynamic vectorization of SPMD workloads* (Parallel Computing 40, 2014).
//!
//! Rule: the ready lane with the smallest stack pointer runs, among equals the one with the smallest pc, with all ready
//! lanes at its pc (their stack pointers may differ).
//!
//! It reconverges because a lane in a deeper call is behind those that wait in the caller, wherever the callee lies.
//! It fails where a join is laid out before an arm, and where two arms call one function: the lanes that call first run
//! through it alone.
//!
//! Worked example: lane 0 calls a function at 20 from 3, lane 1 skips the call and waits at 5 although its pc is
//! smaller than the callee's: `1 2b 3c 20 21r 5` and `1 2b 5` give 1, 2 (both), 3, 20, 21 (lane 0), 5 (both). `minpc`
//! would run 5 twice.

use crate::mechanisms::minimum::with_smallest;
use crate::{Choice, Entry, Family, Heuristic, Lane, LaneSet, Lead, Order, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "minsp-pc",
    family: Family::MinPc,
    rule: "The smallest stack pointer (the deepest call) runs; among equals, the smallest pc.",
    source: "Collange 2011; Milanez et al. 2014",
    file: file!(),
    parameters: &[],
    needs_control_flow: false,
    runs_blocks: false,
    build: |_, _, _| Box::new(MinSpPc),
};

struct MinSpPc;

impl Heuristic for MinSpPc {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        Choice::Run(among(warp, warp.ready()).1)
    }

    fn runs_on(&self, warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        leads(warp, lanes, lead);
        true
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        true
    }
}

/// How long the lanes that the rule chose would be chosen again.
pub(crate) fn leads(warp: &WarpView, lanes: LaneSet, lead: &mut Lead) {
    lead.restart(Order::SpAndPc);
    // Where others stand they run with the chosen ones, whatever their stack pointers.
    lead.stop_at_others();
    for group in warp.groups().iter().filter(|group| group.lanes != lanes) {
        let deepest = group.lanes.iter().min_by_key(|lane| warp.lane(*lane).sp);
        deepest.into_iter().for_each(|lane| warp.stop_behind(lane, lead));
    }
}

/// The rule as a function of lanes, for the models that use it among others.
pub(crate) fn among(warp: &WarpView, candidates: LaneSet) -> (Lane, LaneSet) {
    with_smallest(warp, candidates, |l| (l.sp, l.pc))
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn a_callee_above_its_caller_is_waited_for() {
        let lanes = ["1 2b 3c 20 21r 5", "1 2b 5"];
        assert_eq!(schedule("minsp-pc", &lanes), "1:0-1 2:0-1 3:0 20:0 21:0 5:0-1");
        assert_eq!(schedule("minpc", &lanes), "1:0-1 2:0-1 3:0 5:1 20:0 21:0 5:0");
    }
}
