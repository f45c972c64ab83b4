//! `minpc`: smallest pc first.
//!
//! Quinn, Hatcher and Jourdenais, *Compiling C\* programs for a hypercube multicomputer* (SIGPLAN Notices 23, 1988); as
//! a reconvergence rule for GPUs: Collange, *Stack-less SIMT reconvergence at low cost* (ENS Lyon, 2011).
//!
//! Rule: the ready lane with the smallest pc runs, with all ready lanes at its pc.
//!
//! It reconverges because compilers lay code out in order: the lane at the lowest address is the one that is behind, so
//! running it lets it catch up. It fails where a join is laid out before an arm (the lane that jumped back to
//! the join runs ahead of the one still in the arm), and where a callee lies above its caller: lanes in the caller run
//! on.
//!
//! Worked example: lanes part at 2, lane 0 takes 3, lane 1 takes 4, both join at 5.
//! `1 2b 3 5` and `1 2b 4 5` give the fetches 1, 2 (both lanes), 3 (lane 0), 4 (lane 1), 5 (both).

use crate::mechanisms::minimum::with_smallest;
use crate::{Choice, Entry, Family, Heuristic, LaneSet, Lead, Order, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "minpc",
    family: Family::MinPc,
    rule: "The smallest pc runs.",
    source: "Quinn et al. 1988; Collange 2011",
    file: file!(),
    parameters: &[],
    needs_control_flow: false,
    runs_blocks: false,
    build: |_, _, _| Box::new(MinPc),
};

struct MinPc;

impl Heuristic for MinPc {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        let first =
            warp.groups().iter().min_by_key(|g| g.pc).expect("a choice is asked for only while a lane is ready");
        Choice::Run(first.lanes)
    }

    fn runs_on(&self, warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        lead.restart(Order::Pc);
        let own = lanes.lowest().map(|lane| warp.lane(lane).pc);
        let others = warp.groups().iter().filter(|group| Some(group.pc) != own);
        others.for_each(|group| lead.stop_behind_pc(group.pc));
        true
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        true
    }
}

/// The rule as a function of lanes, for the models that use it among others.
pub(crate) fn among(warp: &WarpView, candidates: crate::LaneSet) -> (crate::Lane, crate::LaneSet) {
    with_smallest(warp, candidates, |l| l.pc)
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn a_diamond_reconverges_at_its_join() {
        assert_eq!(schedule("minpc", &["1 2b 3 5", "1 2b 4 5"]), "1:0-1 2:0-1 3:0 4:1 5:0-1");
    }

    #[test]
    fn join_before_arm_is_not_reconverged() {
        assert_eq!(schedule("minpc", &["1 2b 3 4", "1 2b 9b 3 4"]), "1:0-1 2:0-1 3:0 4:0 9:1 3:1 4:1");
    }
}
