//! `barrier`: a pc per lane, and convergence barriers at immediate post-dominators.
//!
//! Damani et al., *Speculative reconvergence for improved SIMT efficiency* (CGO 2020), section 2: what NVIDIA's Volta
//! and later do.
//!
//! Rule: lanes that part at a branch join its barrier (BSSY). The barrier stands at the branch's immediate
//! post-dominator in its function, or at the function's end. A lane that reaches the barrier waits (BSYNC) until all
//! that joined have come; then they go on together. A lane that leaves the function another way, or finishes, is taken
//! off (BREAK). Of the lanes that don't wait, the one with the smallest pc runs, with those that it has not parted
//! from.
//!
//! Hardware reunites lanes at convergence barriers only: in NVIDIA's whitepaper on Volta a statement behind an if and
//! else runs twice. With `meet=anywhere` all lanes that don't wait run together wherever they stand at one pc. A
//! barrier then belongs to a place and a call level: lanes that join it later are waited for too.
//!
//! It reconverges where `ipdom` does, with as many fetches where no lane waits for a lock. With `meet=anywhere` it
//! reconverges there at the latest. It fails where `ipdom` does. With `meet=anywhere` it also fails where the order of
//! the code leads lanes past each other between branch and barrier.
//!
//! It never deadlocks: it *yields*, as hardware does that promises forward progress (NVIDIA since Volta). A lane that
//! holds a lock may wait at a convergence barrier for a lane that wants the lock. When all lanes that can run wait at
//! convergence barriers, those at the innermost barrier are taken off it and go on. With `yield=no` they do so only
//! where the missing lanes wait at a barrier of the program; where some wait for a lock it deadlocks.
//!
//! With `placement=structured` the barriers stand where compilers for GPUs put them: one at the end of a loop's
//! iteration, and one behind the loop. A lane that leaves the loop is taken off the first. With `placement=nak` they
//! stand where Mesa's compiler for NVIDIA puts them: also behind the arms of an `if` in which other lanes continue or
//! return.
//!
//! *Limitation*: as that of `ipdom`.
//!
//! Worked example: `1 2b 3 4` and `1 2b 9b 3 4`: the arm at 9 lies after the join at 3. Lane 0 waits at 3, which
//! `minpc` would run: 1, 2 (both), 9 (lane 1), 3, 4 (both).

use std::cmp::Reverse;

use trace_format::Pc;

use crate::mechanisms::convergence::Convergence;
use crate::mechanisms::predication;
use crate::models::min_pc;
use crate::warp::reconvergence::{Branch, Reconvergence, are_apart};
use crate::{
    Choice, Entry, Family, Heuristic, Lane, LaneSet, Lead, Order, Parameter, Placement, Ran, Settings, Tally, Together,
    Values, WarpView,
};

pub(crate) const ENTRY: Entry = Entry {
    name: "barrier",
    family: Family::Barriers,
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
            values: Values::OneOf(&["barriers", "anywhere"]),
            default: 0,
            help: "where lanes that parted run together again: at convergence barriers only, as hardware does, or wherever they stand at one pc",
        },
        Placement::PARAMETER,
        Parameter {
            name: "order",
            values: Values::OneOf(&["pc", "pc-last", "most-lanes", "fewest-lanes"]),
            default: 0,
            help: "with meet=barriers, which group of lanes runs first among those that can: that with the smallest \
                 or the largest pc, or by its lanes; hardware is free to choose",
        },
        predication::PARAMETER,
    ],
    needs_control_flow: true,
    runs_blocks: false,
    build: |settings, lanes, program| match settings.choice("meet") {
        0 => Box::new(AtBarriers {
            warp: Convergence::new(lanes, usize::MAX, Placement::of(settings), program),
            yields: settings.is_yes("yield"),
            order: GroupOrder::ALL[settings.choice("order")],
        }),
        _ => Box::new(Anywhere::new(lanes, settings)),
    },
};

/// Which group goes first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GroupOrder {
    Pc,
    PcLast,
    MostLanes,
    FewestLanes,
}

impl GroupOrder {
    /// In the order of the parameter's values.
    const ALL: [GroupOrder; 4] = [GroupOrder::Pc, GroupOrder::PcLast, GroupOrder::MostLanes, GroupOrder::FewestLanes];

    /// The group of the smallest goes first; of equals that of the smallest pc.
    fn key(self, lanes: LaneSet, pc: Pc) -> u64 {
        match self {
            GroupOrder::Pc => 0,
            GroupOrder::PcLast => u64::MAX - pc.0,
            GroupOrder::MostLanes => u64::MAX - lanes.len() as u64,
            GroupOrder::FewestLanes => lanes.len() as u64,
        }
    }
}

/// Lanes meet at barriers only.
struct AtBarriers {
    warp: Convergence,
    yields: bool,
    order: GroupOrder,
}

impl Heuristic for AtBarriers {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        loop {
            self.warp.settle(warp);
            let splits = self.warp.splits();
            let first = |i: usize| {
                let lanes = splits[i].lanes & warp.ready();
                let lane = lanes.lowest()?;
                let pc = warp.lane(lane).pc;
                // Who waits at a soft point for nobody lets others come there first.
                Some((splits[i].passes, self.order.key(lanes, pc), pc, lane, i))
            };
            if let Some((.., first)) = (0..splits.len()).filter_map(first).min() {
                let first = self.warp.part_from_spinning(first, warp);
                return Choice::Run(self.warp.ready_of(first, warp));
            }
            let for_lock = warp.waiting_for_lock();
            let may_yield = self.yields || for_lock.is_empty();
            if !may_yield || !self.warp.clear_a_register(warp) {
                return Choice::Deadlock(if for_lock.is_empty() { warp.live() } else { for_lock });
            }
        }
    }

    fn executed(&mut self, warp: &WarpView, ran: &Ran) {
        self.warp.ran(Branch::of(warp, ran));
    }

    fn runs_on(&self, warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        let others = self.warp.splits().iter().filter(|split| split.lanes != lanes);
        self.order == GroupOrder::Pc && self.warp.runs_on(lanes, Order::Pc, lead) && {
            let first = others.filter_map(|split| (split.lanes & warp.ready()).lowest());
            first.for_each(|lane| warp.stop_behind(lane, lead));
            true
        }
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        self.warp.is_whole()
    }

    fn ran(&mut self, run: &Together) {
        self.warp.ran_run(run);
    }

    fn tally(&self) -> Tally {
        self.warp.tally()
    }
}

struct Barrier {
    at: Reconvergence,
    /// Where its lanes go that leave the loops around it: a lane that comes there is no longer waited for here.
    around: Vec<Reconvergence>,
    participants: LaneSet,
    /// Those of the participants that have come.
    waiting: LaneSet,
}

/// Lanes meet wherever they stand at one pc.
struct Anywhere {
    /// No two at the same place; none without participants.
    barriers: Vec<Barrier>,
    /// The lanes' levels before they ran.
    levels: Vec<u32>,
    /// Lanes that have run and then waited for a lock or the program's barrier: where they stand is known when they are
    /// freed.
    halted: LaneSet,
    yields: bool,
    placement: Placement,
}

impl Anywhere {
    fn new(lanes: usize, settings: &Settings) -> Anywhere {
        Anywhere {
            barriers: Vec::new(),
            levels: vec![1; lanes],
            halted: LaneSet::EMPTY,
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

    /// The lane waits at the innermost of its barriers to which it has come, and is taken off those that it went past.
    fn come(&mut self, warp: &WarpView, lane: Lane) {
        let state = warp.lane(lane);
        for barrier in &mut self.barriers {
            if barrier.at.pc.is_some() && state.level < barrier.at.level {
                barrier.participants.remove(lane);
            }
        }
        // Lanes that have reached the place behind a loop where its lanes meet are no longer waited for inside.
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

    /// Opens the barriers at which nobody is missing; their lanes reach the next one around it, or go on.
    fn open(&mut self, warp: &WarpView) {
        loop {
            for barrier in &mut self.barriers {
                barrier.participants = barrier.participants & warp.live();
                barrier.waiting = barrier.waiting & barrier.participants;
            }
            let Some(index) = self.barriers.iter().position(|b| b.waiting == b.participants) else { return };
            let opened = self.barriers.swap_remove(index);
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
        for lane in lanes {
            self.come(warp, lane);
        }
        self.open(warp);
        true
    }
}

impl Heuristic for Anywhere {
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
                let lanes = mates & candidates;
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
        if are_apart(warp, live) {
            let points = Branch::of(warp, ran).points(warp, self.placement);
            let mut places: Vec<Reconvergence> = std::iter::once(points.first).chain(points.around).collect();
            for lane in live {
                places.iter_mut().for_each(|at| at.level = self.levels[lane.index()]);
                self.join(&places, lane);
            }
        }
        for lane in ready {
            self.come(warp, lane);
        }
        self.open(warp);
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        self.barriers.is_empty()
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
    fn lanes_that_may_meet_anywhere_run_together_early() {
        let lanes = ["1b 5 8", "1b 3b 5 8", "1b 3b 8"];
        assert_eq!(schedule("barrier:meet=anywhere", &lanes), "1:0-2 3:1-2 5:0-1 8:0-2");
    }

    #[test]
    fn which_group_goes_first_can_be_said_and_changes_no_count() {
        // Two lanes at 3, one at 5, one at 9.
        let lanes = ["1b 3 10", "1b 3 10", "1b 5 10", "1b 9 10"];
        let order = |order: &str| schedule(&format!("barrier:order={order}"), &lanes);
        assert_eq!(order("pc"), "1:0-3 3:0-1 5:2 9:3 10:0-3");
        assert_eq!(order("pc-last"), "1:0-3 9:3 5:2 3:0-1 10:0-3");
        assert_eq!(order("most-lanes"), "1:0-3 3:0-1 5:2 9:3 10:0-3");
        assert_eq!(order("fewest-lanes"), "1:0-3 5:2 9:3 3:0-1 10:0-3");
    }

    #[test]
    fn hardware_reunites_lanes_at_barriers_only() {
        // As in the whitepaper on Volta: what stands behind an if and else inside of another one runs for each side.
        let lanes = ["1b 5 8", "1b 3b 5 8", "1b 3b 8"];
        assert_eq!(schedule("barrier", &lanes), "1:0-2 3:1-2 5:0 5:1 8:0-2");
    }

    #[test]
    fn a_callee_is_shared_by_both_arms_where_lanes_may_meet_anywhere() {
        let lanes = ["1b 2c 20 21r 3b 7", "1b 5c 20 21r 6 7"];
        assert_eq!(schedule("barrier:meet=anywhere", &lanes), "1:0-1 2:0 5:1 20:0-1 21:0-1 3:0 6:1 7:0-1");
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
        let lanes = ["1b 2 7 8", "1b 3", "1b 4 7 8"];
        assert_eq!(schedule("barrier:meet=anywhere", &lanes), "1:0-2 2:0 3:1 4:2 7:0,2 8:0,2");
        // Nor where it leaves a loop to end, in whose turns the others wait for each other.
        let lanes = ["1b 2 3b 1b 2 3b 9", "1b 2 4", "1b 5 3b 1b 2 3b 9"];
        assert_eq!(
            schedule("barrier:placement=structured", &lanes),
            "1:0-2 2:0-1 4:1 5:2 3:0,2 1:0,2 2:0,2 3:0,2 9:0,2"
        );
    }
}
