//! YIELD: nobody waits for lanes that stay in a loop which tries an atomic operation, once others have left it.
//!
//! Who leaves such a loop first is waited for as ever, by whichever exit. Those that go round once more have yielded:
//! at the register behind the loop, and at all around it, nobody waits for them, and they for nobody. They go on as
//! they come out of it; those that come out together stay together, and wait for each other at branches of their own.
//! At a barrier of the program all meet again, since a port has a barrier of the warp there.
//!
//! A lock is such a loop: lanes that have to wait for it go round.

use flowgraph::LoopId;

use super::{Convergence, Split};
use crate::mechanisms::speculation::Speculation;
use crate::warp::reconvergence::{Branch, Reconvergence, are_apart};
use crate::{ControlFlow, Lane, LaneSet, LaneState, Lead, Program, WarpView};

/// Lanes that are in a loop which others have left.
struct Staying {
    around: LoopId,
    /// The call level at which they run it.
    level: u32,
    lanes: LaneSet,
}

/// Who has yielded.
#[derive(Default)]
pub(super) struct Yielding {
    /// Those who will as soon as they go round.
    staying: Vec<Staying>,
    /// Lanes that nobody waits for outside of the loop that they were in.
    loose: LaneSet,
    /// Where there are such, the lanes that waited at a barrier of the program when this was looked at last.
    at_barrier: LaneSet,
}

impl Convergence {
    /// The same, with lanes that yield.
    pub(crate) fn with_yields(self, program: &Program, lanes: usize) -> Convergence {
        let all = program.predictions.with_meetings(&program.control_flow);
        let speculation = (!all.is_empty()).then(|| Speculation::new(program, all, self.placement, lanes));
        Convergence { yielding: Some(Yielding::default()), speculation, ..self }
    }

    /// Lets lanes yield that wait for a lock, and brings lanes together that have met at a barrier. Whether splits have
    /// to be settled again.
    pub(crate) fn yield_at_locks(&mut self, warp: &WarpView) -> bool {
        let met = self.meet_again(warp);
        let waiting = warp.waiting_for_lock();
        if waiting.is_empty() {
            return met;
        }
        let mut index = 0;
        while index < self.splits.len() {
            index = self.part_from_spinning(index, warp) + 1;
        }
        // Others run first.
        self.splits.sort_by_key(|split| !split.lanes.is_subset(&waiting));
        // Those that are blocked have yet to come to the lock, which is behind where they wait.
        let blocked = self.registers.iter().fold(self.collected(), |all, register| all | register.blocked);
        self.loosen(waiting - blocked, |_| true) || met
    }

    /// These lanes have parted at the branch: those that stay in a loop, while others leave it, yield when they go
    /// round.
    pub(super) fn yield_at(&mut self, branch: &Branch, lanes: LaneSet, warp: &WarpView) {
        let (Some(yields), Some(yielding)) = (warp.program().control_flow.yields(), &mut self.yielding) else { return };
        let level = branch.level;
        for around in yields.around(branch.place) {
            let stays =
                |state: &LaneState| state.level > level || state.level == level && yields.holds(around, state.place);
            let staying: LaneSet = lanes.iter().filter(|lane| stays(warp.lane(*lane))).collect();
            if staying != lanes {
                yielding.staying.retain(|stay| stay.around != around || stay.lanes.is_disjoint(&lanes));
                yielding.staying.push(Staying { around, level, lanes: staying });
            }
        }
    }

    /// Lets the lanes of a split yield that go round a loop which others have left, before those are blocked that have
    /// come to where they wait.
    pub(super) fn yield_before_waiting(&mut self, index: usize, lanes: LaneSet, warp: &WarpView) {
        let Some(yields) = warp.program().control_flow.yields().filter(|_| self.yielding.is_some()) else { return };
        let last = self.splits[index].last.filter(|branch| !branch.lanes.is_disjoint(&lanes));
        if let Some(branch) = last
            && are_apart(warp, lanes)
        {
            self.yield_at(&branch, lanes, warp);
        }
        let staying = self.yielding.as_mut().map(|yielding| std::mem::take(&mut yielding.staying)).unwrap_or_default();
        let mut left = Vec::new();
        for mut stay in staying {
            let (around, level) = (stay.around, stay.level);
            let goes_round =
                |lane: &Lane| warp.lane(*lane).level == level && warp.lane(*lane).place == yields.header(around);
            let round: LaneSet = (stay.lanes & lanes).iter().filter(goes_round).collect();
            if !round.is_empty() {
                self.loosen(round, |at| at.level <= level && !is_in(around, at, level, warp));
            }
            let is_out = |lane: &Lane| {
                let state = warp.lane(*lane);
                state.level < level || state.level == level && !yields.holds(around, state.place)
            };
            let out: LaneSet = (stay.lanes & lanes).iter().filter(is_out).collect();
            stay.lanes = (stay.lanes & warp.live()) - (round | out);
            if !stay.lanes.is_empty() {
                left.push(stay);
            }
        }
        if let Some(yielding) = &mut self.yielding {
            yielding.staying = left;
        }
    }

    /// Lanes that run on are looked at where they go round a loop that others have left.
    pub(crate) fn stop_where_lanes_yield(&self, lanes: LaneSet, lead: &mut Lead, control_flow: &ControlFlow) {
        let (Some(yielding), Some(yields)) = (&self.yielding, control_flow.yields()) else { return };
        for stay in yielding.staying.iter().filter(|stay| !stay.lanes.is_disjoint(&lanes)) {
            lead.stop_at(control_flow.start(yields.header(stay.around)));
        }
    }

    /// Takes lanes off the masks of all registers at such places; whether they were in one.
    fn loosen(&mut self, lanes: LaneSet, which: impl Fn(&Reconvergence) -> bool) -> bool {
        let mut any = LaneSet::EMPTY;
        for register in self.registers.iter_mut().filter(|r| !r.mask.is_disjoint(&lanes) && which(&r.at)) {
            any = any | register.mask & lanes;
            register.mask = register.mask - lanes;
        }
        if let Some(yielding) = &mut self.yielding {
            yielding.loose = yielding.loose | lanes;
        }
        self.yields += any.len() as u64;
        self.may_open |= !any.is_empty();
        self.changed |= !any.is_empty();
        !any.is_empty()
    }

    /// Makes one split of lanes that a barrier of the program has let go, that stand at one place, and for which nobody
    /// waits elsewhere; whether there were any.
    fn meet_again(&mut self, warp: &WarpView) -> bool {
        let collected = self.collected();
        let Some(yielding) = &mut self.yielding else { return false };
        let waiting = warp.live() - warp.ready() - warp.waiting_for_lock();
        let freed = yielding.at_barrier & warp.ready();
        yielding.at_barrier = if yielding.loose.is_empty() { LaneSet::EMPTY } else { waiting };
        if freed.is_empty() {
            return false;
        }
        let awaited = self.registers.iter().fold(collected, |all, register| all | register.mask);
        let apart = warp.ready() - awaited;
        let mut left = freed & apart;
        while let Some(first) = left.lowest() {
            let here = |lane: &Lane| warp.lane(*lane).level == warp.lane(first).level;
            let together: LaneSet = (apart & warp.mates(first)).iter().filter(here).collect();
            left = left - together;
            self.splits.iter_mut().for_each(|split| split.lanes = split.lanes - together);
            self.splits.retain(|split| !split.lanes.is_empty());
            self.splits.push(Split { lanes: together, last: None, moved: true, passes: false });
        }
        self.changed = true;
        true
    }
}

/// Whether a place at which lanes wait is in the loop, which they run at this level.
fn is_in(id: LoopId, at: &Reconvergence, level: u32, warp: &WarpView) -> bool {
    let control_flow = &warp.program().control_flow;
    let place = at.pc.and_then(|pc| control_flow.place_at(pc));
    at.level == level && place.is_some_and(|place| control_flow.yields().is_some_and(|all| all.holds(id, place)))
}
