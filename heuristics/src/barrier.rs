//! `barrier`: a pc per lane, and convergence barriers at immediate post-dominators.
//!
//! Damani et al., *Speculative reconvergence for improved SIMT efficiency* (CGO 2020), section 2: what NVIDIA's Volta and later do.
//!
//! Rule: lanes that part at a branch join its barrier (BSSY), which stands at the branch's immediate post-dominator in its function, or at its
//! end. A lane that comes there waits (BSYNC) until all that joined have come; one that leaves the function another way, or finishes,
//! is taken off (BREAK). Of the lanes that don't wait, the one with the smallest pc runs, with all such lanes at its pc.
//! A barrier belongs to a place and a call level: lanes that join it later are waited for too. Lanes that spin on a lock have no
//! barrier for it: the one that gets the lock goes on.
//!
//! It reconverges where `ipdom` does at the latest, and wherever lanes happen to meet before: there is no stack that
//! keeps them apart. It fails where the order of the code leads lanes past each other between branch and barrier. Where
//! a lane that holds a lock waits at a convergence barrier for one that wants it, it *yields*, as hardware does that
//! promises forward progress (NVIDIA since Volta): when all lanes that can run wait at convergence barriers, those at
//! the innermost one are taken off it and go on. So it never deadlocks. With `yield=no` it does so only where lanes are
//! missing that wait at a barrier of the program, and deadlocks where some wait for a lock.
//!
//! Hardware reunites lanes at convergence barriers only (NVIDIA's whitepaper on Volta draws a statement behind an if
//! and else that runs twice): `meet=barriers`. With `placement=structured` the barriers stand where compilers for GPUs
//! put them: one at the end of a loop's turn, which a lane that leaves the loop is taken off, and one behind the loop.
//!
//! *Limitation*: as that of `ipdom`.
//!
//! Worked example: `1 2b 3 4` and `1 2b 9b 3 4`: the arm at 9 lies after the join at 3. Lane 0 waits at 3, which `minpc` would
//! run: 1, 2 (both), 9 (lane 1), 3, 4 (both).

use std::cmp::Reverse;

use crate::reconvergence::{Branch, Reconvergence, distinct_pcs};
use crate::{
    Choice, Entry, Heuristic, Lane, LaneSet, Parameter, Placement, Ran, Settings, Values, WarpView, min_pc, predication,
};

pub(crate) const ENTRY: Entry = Entry {
    name: "barrier",
    rule: "A pc per lane; lanes that part wait for each other in a convergence barrier at the post-dominator.",
    source: "Damani et al. 2020",
    file: file!(),
    parameters: &[
        Parameter {
            name: "yield",
            values: Values::YesNo,
            default: 1,
            help: "whether lanes leave a convergence barrier at which they wait for one that waits for a lock",
        },
        Parameter {
            name: "meet",
            values: Values::OneOf(&["anywhere", "barriers"]),
            default: 0,
            help: "where lanes that parted run together again: wherever they stand at one pc, or at convergence barriers only, as hardware does",
        },
        Placement::PARAMETER,
        predication::PARAMETER,
    ],
    needs_control_flow: true,
    runs_blocks: false,
    build: |settings, lanes, _| Box::new(Barriers::new(lanes, settings)),
};

struct Barrier {
    at: Reconvergence,
    /// Where its lanes go that leave the loops around it: a lane that comes there is no longer waited for here.
    around: Vec<Reconvergence>,
    participants: LaneSet,
    /// Those of the participants that have come.
    waiting: LaneSet,
}

struct Barriers {
    /// No two at the same place; none without participants.
    barriers: Vec<Barrier>,
    /// The lanes' levels before they ran.
    levels: Vec<u32>,
    /// Lanes that have run and then waited for a lock or the program's barrier: where they stand is known when they are freed.
    halted: LaneSet,
    /// The lanes that run together, where they do not meet anywhere: each lane is in one of them.
    splits: Option<Vec<LaneSet>>,
    yields: bool,
    placement: Placement,
}

impl Barriers {
    fn new(lanes: usize, settings: &Settings) -> Barriers {
        Barriers {
            barriers: Vec::new(),
            levels: vec![1; lanes],
            halted: LaneSet::EMPTY,
            splits: (settings.choice("meet") == 1).then(|| vec![LaneSet::first(lanes)]),
            yields: settings.is_yes("yield"),
            placement: Placement::of(settings),
        }
    }

    fn waiting(&self) -> LaneSet {
        self.barriers.iter().fold(LaneSet::EMPTY, |all, b| all | b.waiting)
    }

    /// The lane joins the barriers of a branch, which stand at these places.
    fn join(&mut self, places: &[Reconvergence], lane: Lane) {
        for (i, at) in places.iter().enumerate() {
            match self.barriers.iter_mut().find(|b| b.at == *at) {
                Some(barrier) => barrier.participants.insert(lane),
                None => {
                    let (around, waiting) = (places[i + 1..].to_vec(), LaneSet::EMPTY);
                    let participants = LaneSet::only(lane);
                    self.barriers.push(Barrier { at: *at, around, participants, waiting });
                }
            }
        }
    }

    /// Lanes that ran together are apart, each with those that stand at its pc.
    fn part(&mut self, warp: &WarpView, lanes: LaneSet) {
        let Some(splits) = &mut self.splits else { return };
        splits.iter_mut().for_each(|split| *split = *split - lanes);
        for pc in distinct_pcs(warp, lanes) {
            splits.push(lanes.iter().filter(|lane| warp.lane(*lane).pc == pc).collect());
        }
        splits.retain(|split| !split.is_empty());
    }

    /// The lane waits at the innermost of its barriers to which it has come, and is taken off those that it went past.
    fn come(&mut self, warp: &WarpView, lane: Lane) {
        let state = warp.lane(lane);
        for barrier in &mut self.barriers {
            if barrier.at.pc.is_some() && state.level < barrier.at.level {
                barrier.participants.remove(lane);
            }
        }
        // Who has come to where lanes of a loop meet behind it is no longer waited for inside.
        for barrier in &mut self.barriers {
            if barrier.around.iter().any(|point| point.pc.is_some() && point.is_reached(state)) {
                barrier.participants.remove(lane);
                barrier.waiting.remove(lane);
            }
        }
        let come_to = |b: &&mut Barrier| b.participants.contains(lane) && b.at.is_reached(state);
        if let Some(barrier) = self.barriers.iter_mut().filter(come_to).max_by_key(|b| b.at.level) {
            barrier.waiting.insert(lane);
        }
    }

    /// Opens the barriers at which nobody is missing; their lanes come to the next one around it, or go on.
    fn open(&mut self, warp: &WarpView) {
        loop {
            for barrier in &mut self.barriers {
                barrier.participants = barrier.participants & warp.live();
                barrier.waiting = barrier.waiting & barrier.participants;
            }
            let Some(index) = self.barriers.iter().position(|b| b.waiting == b.participants) else { return };
            let opened = self.barriers.swap_remove(index);
            self.part(warp, opened.waiting);
            for lane in opened.waiting {
                self.come(warp, lane);
            }
        }
    }

    /// Takes lanes off the innermost barrier at which ready ones wait; whether there was one.
    fn give_up_a_barrier(&mut self, warp: &WarpView) -> bool {
        let holds_ready = |b: &(usize, &Barrier)| !(b.1.waiting & warp.ready()).is_empty();
        let innermost = |b: &(usize, &Barrier)| (b.1.at.level, Reverse(b.0));
        let Some((index, _)) = self.barriers.iter().enumerate().filter(holds_ready).max_by_key(innermost) else {
            return false;
        };
        let barrier = &mut self.barriers[index];
        let lanes = std::mem::take(&mut barrier.waiting);
        barrier.participants = barrier.participants - lanes;
        self.part(warp, lanes);
        for lane in lanes {
            self.come(warp, lane);
        }
        self.open(warp);
        true
    }
}

impl Heuristic for Barriers {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        let freed = self.halted & (warp.ready() | (LaneSet::first(warp.lanes()) - warp.live()));
        if !freed.is_empty() {
            self.halted = self.halted - freed;
            for lane in freed & warp.live() {
                self.come(warp, lane);
            }
            self.open(warp);
        }
        loop {
            let candidates = warp.ready() - self.waiting();
            if !candidates.is_empty() {
                let (_, mates) = min_pc::among(warp, candidates);
                let mut lanes = mates & candidates;
                if let Some(splits) = &self.splits {
                    let lowest = lanes.lowest().expect("a choice holds a lane");
                    let split = splits.iter().find(|split| split.contains(lowest)).expect("each lane has a split");
                    lanes = lanes & *split;
                }
                for lane in lanes {
                    self.levels[lane.index()] = warp.lane(lane).level;
                }
                return Choice::Run(lanes);
            }
            let for_lock = warp.waiting_for_lock();
            let may_yield = self.yields || for_lock.is_empty();
            if !may_yield || !self.give_up_a_barrier(warp) {
                return Choice::Deadlock(if for_lock.is_empty() { warp.live() } else { for_lock });
            }
        }
    }

    fn executed(&mut self, warp: &WarpView, ran: &Ran) {
        let live = ran.lanes & warp.live();
        let ready = live & warp.ready();
        self.halted = self.halted | (live - ready);
        if distinct_pcs(warp, live).len() > 1 {
            let points = Branch::of(warp, ran).points(warp, self.placement);
            let mut places: Vec<Reconvergence> = std::iter::once(points.first).chain(points.around).collect();
            for lane in live {
                places.iter_mut().for_each(|at| at.level = self.levels[lane.index()]);
                self.join(&places, lane);
            }
            self.part(warp, live);
        }
        for lane in ready {
            self.come(warp, lane);
        }
        self.open(warp);
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        self.barriers.is_empty() && self.splits.as_ref().is_none_or(|splits| splits.len() == 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn a_join_before_an_arm_is_reconverged() {
        assert_eq!(schedule("barrier", &["1 2b 3 4", "1 2b 9b 3 4"]), "1:0-1 2:0-1 9:1 3:0-1 4:0-1");
    }

    #[test]
    fn lanes_that_meet_early_run_together() {
        assert_eq!(schedule("barrier", &["1b 5 8", "1b 3b 5 8", "1b 3b 8"]), "1:0-2 3:1-2 5:0-1 8:0-2");
    }

    #[test]
    fn hardware_reunites_lanes_at_barriers_only() {
        // As in the whitepaper on Volta: what stands behind an if and else inside of another one runs for each side.
        let lanes = ["1b 5 8", "1b 3b 5 8", "1b 3b 8"];
        assert_eq!(schedule("barrier:meet=barriers", &lanes), "1:0-2 3:1-2 5:0 5:1 8:0-2");
    }

    #[test]
    fn a_callee_is_shared_by_both_arms() {
        let lanes = ["1b 2c 20 21r 3b 7", "1b 5c 20 21r 6 7"];
        assert_eq!(schedule("barrier", &lanes), "1:0-1 2:0 5:1 20:0-1 21:0-1 3:0 6:1 7:0-1");
    }

    #[test]
    fn an_early_return_reconverges_after_the_call() {
        let lanes = ["3c 20 21b 22r 4", "3c 20 21b 30 31r 4"];
        assert_eq!(schedule("barrier", &lanes), "3:0-1 20:0-1 21:0-1 22:0 30:1 31:1 4:0-1");
    }

    #[test]
    fn lanes_that_leave_a_loop_wait_at_its_exit() {
        // The exit lies before the loop: only the barrier holds lane 1 back.
        let lanes = ["9 12b 9 12b 5", "9 12b 5"];
        assert_eq!(schedule("barrier", &lanes), "9:0-1 12:0-1 9:0 12:0 5:0-1");
    }

    #[test]
    fn a_lane_that_ends_is_not_waited_for() {
        assert_eq!(schedule("barrier", &["1b 2 7 8", "1b 3", "1b 4 7 8"]), "1:0-2 2:0 3:1 4:2 7:0,2 8:0,2");
    }
}
