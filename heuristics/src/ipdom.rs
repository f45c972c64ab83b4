//! `ipdom`: the SIMT stack, reconvergence at immediate post-dominators.
//!
//! Fung, Sham, Yuan and Aamodt, *Dynamic warp formation and scheduling for efficient GPU control flow* (MICRO 2007), section 2; GPGPU-Sim.
//!
//! Rule: a stack of entries, each with lanes and the pc at which they reconverge (rpc); the top entry runs. When its lanes
//! disagree on the next pc, the entry waits at R, the branch's immediate post-dominator in its function (the function's return, if there
//! is none), and each next pc becomes an entry above it with rpc R, the fall-through first, then ascending; the last runs first.
//! An entry whose rpc is R already is replaced, not kept. Lanes that come to their rpc in the frame of the branch wait below.
//!
//! It reconverges at the first place that every path from the branch must pass. It fails where paths meet earlier (short-circuit
//! conditions, breaks, calls of one function from both arms), and it deadlocks where lanes of the top entry wait for a lock: they
//! spin, and the lane that has the lock waits for them to leave the loop with it (ElTantawy and Aamodt, *MIMD synchronization on
//! SIMT architectures*, MICRO 2016). Where the top entry waits at a barrier, the next entry below runs.
//!
//! *Limitation*: post-dominators come from the edges that the replayed lanes took; a branch that no lane took changes nothing.
//!
//! Worked example: `1 2b 4 6b 8` and `1 2b 6b 8`: lane 1 skips 4. The post-dominator of 2 is 6, so lane 1 waits there: 1, 2 (both), 4 (lane 0),
//! 6, 8 (both).

use trace_format::Pc;

use crate::{Choice, Entry as RegistryEntry, Heuristic, LaneSet, LaneState, PlaceId, Ran, Together, WarpView};

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "ipdom",
    rule: "SIMT stack: lanes that part wait for each other at the branch's immediate post-dominator.",
    source: "Fung et al. 2007",
    file: file!(),
    parameters: &[],
    needs_control_flow: true,
    build: |_, lanes, _| Box::new(Ipdom::new(lanes)),
};

/// Where lanes reconverge: at this pc of the frame of this level, or when that frame is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reconvergence {
    pub(crate) pc: Option<Pc>,
    pub(crate) level: u32,
}

impl Reconvergence {
    /// Whether a lane that stands here has come to it.
    pub(crate) fn is_reached(&self, state: &LaneState) -> bool {
        state.level < self.level || (state.level == self.level && Some(state.pc) == self.pc)
    }
}

#[derive(Clone, Copy)]
struct StackEntry {
    lanes: LaneSet,
    at: Reconvergence,
}

/// The instruction after which lanes may disagree.
#[derive(Clone, Copy)]
pub(crate) struct Branch {
    pub(crate) lanes: LaneSet,
    place: PlaceId,
    level: u32,
    pub(crate) falls_to: Option<Pc>,
}

impl Branch {
    /// The last instruction that ran.
    pub(crate) fn of(warp: &WarpView, ran: &Ran) -> Branch {
        let place = warp.segment(ran.segment).place;
        Branch { lanes: ran.lanes, place, level: ran.level, falls_to: ran.falls_to }
    }

    /// The last instruction of a run of segments.
    pub(crate) fn of_run(run: &Together) -> Branch {
        let segment = &run.segments[run.last()];
        let (place, level, falls_to) = (segment.place, run.last_level, segment.last().next_pc());
        Branch { lanes: run.lanes, place, level, falls_to }
    }

    /// Where its lanes reconverge.
    pub(crate) fn reconvergence(&self, warp: &WarpView) -> Reconvergence {
        let pc = warp.program().control_flow.immediate_post_dominator(self.place);
        Reconvergence { pc, level: self.level }
    }

    /// How many instructions the block has at which its lanes reconverge.
    pub(crate) fn block_length_after(&self, warp: &WarpView) -> Option<u32> {
        warp.program().control_flow.block_length_after(self.place)
    }
}

struct Ipdom {
    /// The bottom entry, which never reconverges, is never popped; the top is last.
    stack: Vec<StackEntry>,
    last: Option<Branch>,
}

impl Ipdom {
    fn new(lanes: usize) -> Ipdom {
        let bottom = StackEntry { lanes: LaneSet::first(lanes), at: Reconvergence { pc: None, level: 0 } };
        Ipdom { stack: vec![bottom], last: None }
    }

    /// Brings the stack to where the top entry's lanes stand at one pc.
    fn settle(&mut self, warp: &WarpView) {
        loop {
            let bottom = self.stack.len() == 1;
            let top = self.stack.last_mut().expect("the bottom entry stays");
            top.lanes = top.lanes & warp.live();
            let at = top.at;
            top.lanes = top.lanes - top.lanes.iter().filter(|l| at.is_reached(warp.lane(*l))).collect();
            if top.lanes.is_empty() && !bottom {
                self.stack.pop();
                continue;
            }
            let pcs = distinct_pcs(warp, top.lanes);
            if pcs.len() <= 1 {
                return;
            }
            self.part(warp, pcs);
        }
    }

    /// The top entry's lanes stand at these pcs (several): an entry each, above one that waits at the post-dominator.
    fn part(&mut self, warp: &WarpView, mut pcs: Vec<Pc>) {
        let top = *self.stack.last().expect("the bottom entry stays");
        // Lanes may also disagree without a branch of their own: when a function's return joined lanes of several callers.
        let branch = self.last.filter(|b| !b.lanes.is_disjoint(&top.lanes));
        let at = branch.map_or(top.at, |b| b.reconvergence(warp));
        if at == top.at && self.stack.len() > 1 {
            self.stack.pop();
        }
        let falls_to = branch.and_then(|b| b.falls_to);
        pcs.sort_by_key(|pc| (Some(*pc) != falls_to, *pc));
        for pc in pcs {
            let lanes = top.lanes.iter().filter(|l| warp.lane(*l).pc == pc).collect();
            self.stack.push(StackEntry { lanes, at });
        }
        self.last = None;
    }
}

/// The pcs at which these lanes stand, each once.
pub(crate) fn distinct_pcs(warp: &WarpView, lanes: LaneSet) -> Vec<Pc> {
    let mut pcs: Vec<Pc> = Vec::new();
    for lane in lanes {
        let pc = warp.lane(lane).pc;
        if !pcs.contains(&pc) {
            pcs.push(pc);
        }
    }
    pcs
}

impl Heuristic for Ipdom {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        self.settle(warp);
        let mut above = LaneSet::EMPTY;
        for entry in self.stack.iter().rev() {
            let lanes = entry.lanes - above;
            // Who waits for a lock spins; who has it waits, in this entry or below, for the spinning ones to come along.
            let spinning = lanes & warp.waiting_for_lock();
            if !spinning.is_empty() {
                return Choice::Deadlock(spinning);
            }
            let ready = lanes & warp.ready();
            if let Some(lane) = ready.lowest() {
                return Choice::Run(ready & warp.mates(lane));
            }
            above = above | lanes;
        }
        Choice::Deadlock(warp.live())
    }

    fn executed(&mut self, warp: &WarpView, ran: &Ran) {
        self.last = Some(Branch::of(warp, ran));
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        self.stack.len() == 1
    }

    fn ran_together(&mut self, run: &Together) {
        self.last = Some(Branch::of_run(run));
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

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
