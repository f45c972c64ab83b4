//! Warp splits and barrier registers, which `hanoi` and `barrier` share.
//!
//! A *split* is lanes that run together. Where they part, a *barrier register* is filled with their mask and with the
//! place at which they wait for each other (BSSY), and each next pc becomes a split. A lane that reaches the place is
//! blocked (BSYNC) until all lanes of the mask are, and then they are one split again. A lane that reaches the place
//! of a register further out has left those inside, and is taken off their masks (BREAK); so is one that has finished
//! (EXIT).
//!
//! Lanes that wait at a predicted point ([`crate::warp::prediction`]) are in no split, as blocked ones are.
//!
//! Each execution of a BSSY fills a register of its own. So who is blocked with whom depends on the way of each lane
//! alone, never on which split runs first.

mod regions;
mod register;
mod yielding;

use std::collections::BTreeMap;

use trace_format::Pc;

use self::register::Register;
use self::yielding::Yielding;
use crate::mechanisms::speculation::Speculation;
use crate::warp::reconvergence::{Branch, Points, Reconvergence, are_apart, by_pc};
use crate::{LaneSet, LaneState, Lead, Order, Placement, Program, Tally, Together, WarpView};

/// Lanes that run together: those that are ready stand at one pc.
#[derive(Clone, Copy)]
pub(crate) struct Split {
    pub(crate) lanes: LaneSet,
    last: Option<Branch>,
    /// Whether its lanes may have moved since it was settled.
    moved: bool,
    /// Whether its lanes stand at a soft predicted point with so many that they need not wait.
    pub(crate) passes: bool,
}

/// The splits and barrier registers of a warp.
pub(crate) struct Convergence {
    /// A stack: the top is last. Every lane is in one of them or blocked.
    splits: Vec<Split>,
    /// In the order in which they were filled: of two that hold a lane, the later one is inside. All lanes of a split
    /// are in the same ones.
    registers: Vec<Register>,
    placement: Placement,
    /// How many registers there are for the lanes of a split.
    count: usize,
    /// Where lanes are collected beside that.
    speculation: Option<Speculation>,
    /// Who has yielded, where lanes do.
    yielding: Option<Yielding>,
    /// How often one more was filled than there are.
    pub(crate) spills: u64,
    /// How often lanes went on that others waited for, or those went on without them.
    pub(crate) yields: u64,
    /// See [`crate::Tally::sync_fetches`].
    pub(crate) sync_fetches: u64,
    pub(crate) sync_instructions: u64,
    /// The lanes that were live when the splits were settled last.
    live: LaneSet,
    /// Whether a register's lanes may all be blocked since.
    may_open: bool,
    /// Whether splits or registers have changed since, other than by where lanes stand.
    changed: bool,
}

impl Convergence {
    /// All lanes in one split, and so many registers; those of the program's predictions besides.
    pub(crate) fn new(lanes: usize, count: usize, placement: Placement, program: &Program) -> Convergence {
        let predicts = !program.predictions.is_empty();
        let all = Split { lanes: LaneSet::first(lanes), last: None, moved: true, passes: false };
        Convergence {
            splits: vec![all],
            registers: Vec::new(),
            placement,
            count,
            speculation: predicts.then(|| Speculation::new(program, program.predictions.clone(), placement, lanes)),
            yielding: None,
            spills: 0,
            yields: 0,
            sync_fetches: 0,
            sync_instructions: 0,
            live: LaneSet::first(lanes),
            may_open: false,
            changed: false,
        }
    }

    /// The splits, the top of the stack last.
    pub(crate) fn splits(&self) -> &[Split] {
        &self.splits
    }

    /// Whether all lanes are in one split, and nobody is waited for.
    pub(crate) fn is_whole(&self) -> bool {
        self.splits.len() == 1 && self.registers.is_empty() && self.collected().is_empty()
    }

    /// The lanes that wait at a predicted point.
    fn collected(&self) -> LaneSet {
        self.speculation.as_ref().map_or(LaneSet::EMPTY, Speculation::waiting)
    }

    /// These lanes, all of one split, have run; the branch is the last instruction of that.
    pub(crate) fn ran(&mut self, branch: Branch) {
        self.note(branch);
        self.join(branch.lanes, |speculation| speculation.ran(branch.lanes, branch.place, branch.level));
    }

    /// Has lanes join barriers of predictions, each of which takes registers.
    fn join(&mut self, lanes: LaneSet, joins: impl FnOnce(&mut Speculation)) {
        let Some(speculation) = &mut self.speculation else { return };
        let before = speculation.registers(lanes);
        joins(speculation);
        let new = speculation.registers(lanes).saturating_sub(before);
        if new > 0 {
            let held = self.registers.iter().filter(|register| !register.mask.is_disjoint(&lanes)).count();
            self.spills += (held + before + new).saturating_sub(self.count).min(new) as u64;
        }
    }

    fn note(&mut self, branch: Branch) {
        if let Some(split) = self.splits.iter_mut().find(|s| !s.lanes.is_disjoint(&branch.lanes)) {
            split.last = Some(branch);
            (split.moved, split.passes) = (true, false);
        }
    }

    /// All lanes have run these segments, and none of them waited there.
    pub(crate) fn ran_run(&mut self, run: &Together) {
        self.note(Branch::of_run(run));
        self.join(run.lanes, |speculation| speculation.ran_run(run));
    }

    /// Brings the splits to where each one's lanes stand at one pc, and blocks those that have reached the place where
    /// they wait.
    pub(crate) fn settle(&mut self, warp: &WarpView) {
        if self.live != warp.live() {
            for register in &mut self.registers {
                register.mask = register.mask & warp.live();
                register.blocked = register.blocked & warp.live();
            }
            (self.live, self.may_open, self.changed) = (warp.live(), true, true);
        }
        if self.speculation.is_some() {
            (self.may_open, self.changed) = (true, true);
        }
        self.fill_before_cancels(warp);
        if let Some(speculation) = &mut self.speculation {
            speculation.keep(warp.live());
            for split in self.splits.iter().filter(|split| split.moved) {
                for lane in split.lanes & warp.live() {
                    let state = warp.lane(lane);
                    let place = state.place;
                    let flow = &warp.program().control_flow;
                    for register in &mut self.registers {
                        let Some(region) = register.behind else { continue };
                        let at = register.at_of(lane);
                        let is_there = register.mask.contains(lane) && at.level == state.level;
                        if is_there && speculation.has_passed(region, place, &at, flow) {
                            register.mask.remove(lane);
                        }
                    }
                    let left = speculation.come(lane, state.level, place);
                    if !left.is_empty() {
                        let left = |r: &&mut Register| {
                            speculation.has_left(&left, state, place, &r.at_of(lane), r.behind, flow)
                        };
                        self.registers.iter_mut().filter(left).for_each(|register| register.mask.remove(lane));
                    }
                }
                speculation.count();
            }
        }
        self.open(warp);
        let mut i = 0;
        while i < self.splits.len() {
            // New splits take the place of the one that parts, and those that registers let go are on top.
            let stays = !self.splits[i].moved || self.settle_one(i, warp);
            i += usize::from(stays);
            self.open(warp);
        }
        if !std::mem::take(&mut self.changed) {
            return;
        }
        // As long as nobody has left the loop, those that go on need not be kept apart: the next that do fill it again.
        for index in (0..self.registers.len()).rev() {
            let Register { mask, for_exits, .. } = self.registers[index];
            let has_inner = |of: &Split| self.registers[index + 1..].iter().any(|r| !r.mask.is_disjoint(&of.lanes));
            let all_go_on = |split: &Split| mask.is_subset(&split.lanes) && !has_inner(split);
            if for_exits && !mask.is_empty() && self.splits.iter().any(all_go_on) {
                self.registers.remove(index);
            }
        }
    }

    /// Makes a split of its own of those lanes of a split that wait for a lock, where others of it are ready: they are
    /// in the loop that tries it, which the others have left. The new one is below; where the other one is now.
    pub(crate) fn part_from_spinning(&mut self, index: usize, warp: &WarpView) -> usize {
        let lanes = self.splits[index].lanes;
        let spinning = lanes & warp.waiting_for_lock();
        if spinning.is_empty() || lanes.is_disjoint(&warp.ready()) {
            return index;
        }
        self.changed = true;
        self.splits[index].lanes = lanes - spinning;
        self.splits.insert(index, Split { lanes: spinning, last: None, moved: true, passes: false });
        index + 1
    }

    /// Lets blocked lanes go on without those that they wait for, which yield: of the register filled last that blocks
    /// a ready one. Whether there was one.
    pub(crate) fn clear_a_register(&mut self, warp: &WarpView) -> bool {
        if let Some(lanes) = self.speculation.as_mut().and_then(|speculation| speculation.give_up(warp.ready())) {
            self.push(lanes);
            self.yields += 1;
            return true;
        }
        let blocks_ready = |register: &Register| !register.blocked.is_disjoint(&warp.ready());
        let Some(index) = self.registers.iter().rposition(blocks_ready) else { return false };
        let register = &mut self.registers[index];
        let lanes = std::mem::take(&mut register.blocked);
        register.mask = register.mask - lanes;
        self.may_open = true;
        self.push(lanes);
        true
    }

    /// Until when lanes that are all of a split run on: see [`crate::Heuristic::runs_on`]. Whether another split goes
    /// first then is for the model to say.
    pub(crate) fn runs_on(&self, lanes: LaneSet, order: Order, lead: &mut Lead) -> bool {
        if self.speculation.is_some() || !self.splits.iter().any(|split| split.lanes == lanes) {
            return false;
        }
        lead.restart(order);
        let own = self.registers.iter().filter(|register| !register.mask.is_disjoint(&lanes));
        own.for_each(|register| register.at.ends(lead));
        true
    }

    /// What lanes did for the sake of predictions; none where nothing is predicted.
    pub(crate) fn tally(&self) -> Tally {
        let Some(speculation) = self.speculation.as_ref().filter(|speculation| speculation.is_asked(0)) else {
            return Tally::default();
        };
        Tally {
            yields: Some(self.yields),
            barrier_operations: Some(speculation.taken.operations),
            wait_instructions: Some(speculation.taken.instructions),
            ..Tally::default()
        }
    }

    /// The lanes of a split that can run now.
    pub(crate) fn ready_of(&self, index: usize, warp: &WarpView) -> LaneSet {
        // Where lanes were freed from a wait, they may stand elsewhere than the others.
        let ready = self.splits[index].lanes & warp.ready();
        ready.lowest().map_or(LaneSet::EMPTY, |lane| ready & warp.mates(lane))
    }

    fn push(&mut self, lanes: LaneSet) {
        self.changed = true;
        self.splits.push(Split { lanes, last: None, moved: true, passes: false });
    }

    /// Blocks those lanes of a split that have reached the place where they wait, and parts the others; whether it
    /// stays as it is.
    fn settle_one(&mut self, index: usize, warp: &WarpView) -> bool {
        let mut lanes = self.splits[index].lanes & warp.live();
        if let Some(speculation) = &mut self.speculation
            && speculation.is_enough(lanes, warp)
        {
            // Lanes that need not wait stay on the barriers of branches, which are for all that part here.
            let parts = by_pc(warp, lanes);
            if parts.len() > 1 {
                self.splits[index].lanes = lanes;
                self.part(index, parts, warp);
                return false;
            }
            lanes = lanes | speculation.pass_with_waiting(lanes, warp);
            lanes = lanes | self.take_in_passing(index, warp);
            self.splits[index].passes = true;
        }
        self.yield_before_waiting(index, lanes, warp);
        if self.speculation.is_none() {
            return self.settle_unpredicted(index, lanes, warp);
        }
        let (all, mut collects) = (lanes, false);
        // The registers that lanes which wait at a predicted point are taken off.
        let mut left: Vec<usize> = Vec::new();
        // Those at which lanes arrive.
        let mut arrived: BTreeMap<usize, LaneSet> = BTreeMap::new();
        for lane in lanes {
            let state = warp.lane(lane);
            if let Some(speculation) = &mut self.speculation
                && let Some(region) = speculation.waits(lane, state)
            {
                let control_flow = &warp.program().control_flow;
                for (index, register) in self.registers.iter_mut().enumerate() {
                    if register.mask.contains(lane)
                        && speculation.gives_way(lane, &register.at_of(lane), register.behind, control_flow)
                    {
                        register.mask.remove(lane);
                        if speculation.is_asked(region) && !left.contains(&index) {
                            left.push(index);
                        }
                    }
                }
                lanes.remove(lane);
                collects = true;
                continue;
            }
            let come_to = |r: &Register| r.mask.contains(lane) && r.at_of(lane).is_reached(state);
            if let Some(inner) = self.registers.iter().rposition(come_to) {
                self.registers[inner + 1..].iter_mut().for_each(|left| left.mask.remove(lane));
                self.registers[inner].blocked.insert(lane);
                lanes.remove(lane);
                self.may_open = true;
                arrived.entry(inner).or_insert(LaneSet::EMPTY).insert(lane);
            }
        }
        for (register, lanes) in arrived {
            if self.registers[register].is_issued {
                self.count_sync(lanes);
            }
        }
        if collects {
            if let Some(speculation) = &mut self.speculation {
                speculation.taken.operations += left.len() as u64;
                speculation.count();
            }
            self.fill_behind_regions(all, &warp.program().control_flow);
        }
        self.splits[index].lanes = lanes;
        self.is_at_one_pc(index, lanes, warp)
    }

    /// Whether the split's lanes stand at one pc; else it is parted.
    fn is_at_one_pc(&mut self, index: usize, lanes: LaneSet, warp: &WarpView) -> bool {
        // Lanes that wait stand elsewhere once they are freed.
        self.splits[index].moved = !lanes.is_subset(&warp.ready());
        let parts = by_pc(warp, lanes);
        if parts.len() == 1 {
            return true;
        }
        self.part(index, parts, warp);
        false
    }

    /// As [`Convergence::settle_one`], where nothing is predicted.
    fn settle_unpredicted(&mut self, index: usize, mut lanes: LaneSet, warp: &WarpView) -> bool {
        // As a rule all stand at one pc and level, and reach a place together.
        let lowest = lanes.lowest().filter(|lane| lanes.is_subset(&warp.mates(*lane)));
        let lead = lowest.map(|lane| warp.lane(lane));
        let lead = lead.filter(|lead| lanes.iter().all(|lane| warp.lane(lane).level == lead.level));
        for inner in (0..self.registers.len()).rev() {
            let Register { mask, at, .. } = &self.registers[inner];
            let held = *mask & lanes;
            if held.is_empty() {
                continue;
            }
            let arrived: LaneSet = match lead {
                Some(lead) if at.is_reached(lead) => held,
                Some(_) => LaneSet::EMPTY,
                None => held.iter().filter(|lane| at.is_reached(warp.lane(*lane))).collect(),
            };
            if !arrived.is_empty() {
                self.registers[inner + 1..].iter_mut().for_each(|left| left.mask = left.mask - arrived);
                self.registers[inner].blocked = self.registers[inner].blocked | arrived;
                lanes = lanes - arrived;
                if self.registers[inner].is_issued {
                    self.count_sync(arrived);
                }
                self.may_open = true;
            }
        }
        let split = &mut self.splits[index];
        if split.lanes != lanes {
            (split.lanes, self.changed) = (lanes, true);
        }
        if lowest.is_some() && !lanes.is_empty() {
            split.moved = false;
            return true;
        }
        self.is_at_one_pc(index, lanes, warp)
    }

    /// Takes the lanes out of other splits that pass where this one stands: who is at a soft point when it opens goes
    /// on together.
    fn take_in_passing(&mut self, index: usize, warp: &WarpView) -> LaneSet {
        let stands = |split: &Split| (split.lanes & warp.live()).lowest().map(|lane| warp.lane(lane));
        let Some(own) = stands(&self.splits[index]) else { return LaneSet::EMPTY };
        let mut all = LaneSet::EMPTY;
        for (i, split) in self.splits.iter_mut().enumerate() {
            let is_there = |state: &LaneState| (state.pc, state.level) == (own.pc, own.level);
            if i != index && split.passes && stands(split).is_some_and(is_there) {
                all = all | std::mem::take(&mut split.lanes);
                split.moved = true;
            }
        }
        all
    }

    /// The split's lanes stand at several pcs, or it has none: a split each, the fall-through on top.
    fn part(&mut self, index: usize, mut parts: Vec<(Pc, LaneSet)>, warp: &WarpView) {
        let Split { lanes, last, .. } = self.splits[index];
        // Lanes may also disagree without a branch of their own: when a function's return joined lanes of several
        // callers.
        let branch = last.filter(|b| !parts.is_empty() && !b.lanes.is_disjoint(&lanes));
        if let Some(branch) = branch {
            self.fill_behind_regions(lanes, &warp.program().control_flow);
            let mut points = branch.points(warp, self.placement);
            let forbidden = |at: &Reconvergence| {
                let control_flow = &warp.program().control_flow;
                self.speculation.as_ref().is_some_and(|s| s.forbids(branch.place, at.pc, control_flow))
            };
            points.around.retain(|at| !forbidden(at));
            let first = if forbidden(&points.first) {
                (!points.around.is_empty()).then(|| points.around.remove(0))
            } else {
                Some(points.first)
            };
            if let Some(first) = first {
                let speculation = self.speculation.as_ref();
                let shifts = speculation.map_or_else(Vec::new, |s| s.shifts(lanes, &branch));
                let is_issued = first.pc.is_some() && !warp.program().is_free(branch.place);
                self.fill(lanes, &shifts, &Points { first, ..points }, is_issued);
            }
            self.yield_at(&branch, lanes, warp);
        } else if self.speculation.is_none()
            && let Some(points) = Points::of_beginnings(warp, lanes, self.placement)
        {
            self.fill(lanes, &[], &points, false);
        }
        let falls_to = branch.and_then(|b| b.falls_to);
        parts.sort_by_key(|(pc, _)| (Some(*pc) != falls_to, *pc));
        let split = |(_, lanes)| Split { lanes, last: None, moved: true, passes: false };
        self.splits.splice(index..=index, parts.into_iter().rev().map(split));
        self.changed = true;
    }

    /// Lanes issue an instruction by which they are made to wait, or wait.
    fn count_sync(&mut self, lanes: LaneSet) {
        self.sync_fetches += 1;
        self.sync_instructions += lanes.len() as u64;
    }

    /// Fills registers for lanes that part, unless the innermost of theirs stands at the place already. Who leaves a
    /// loop waits behind it, unless one further out stands there.
    fn fill(&mut self, lanes: LaneSet, shifts: &[i32], points: &Points, is_issued: bool) {
        let held = || self.registers.iter().filter(|r| lanes.is_subset(&r.mask) && r.is_shifted_by(shifts));
        if held().next_back().is_some_and(|r| r.at == points.first) {
            return;
        }
        let around = points.new_around(|point| held().any(|r| r.at == *point));
        let new = around.len() + 1;
        let predicted = self.speculation.as_ref().map_or(0, |speculation| speculation.registers(lanes));
        self.spills += (held().count() + predicted + new).saturating_sub(self.count).min(new) as u64;
        if is_issued {
            self.count_sync(lanes);
        }
        let filled = |(at, for_exits)| Register {
            at,
            shifts: shifts.to_vec(),
            mask: lanes,
            blocked: LaneSet::EMPTY,
            for_exits,
            is_issued,
            behind: None,
        };
        let around = around.iter().rev().map(|at| (*at, true));
        self.registers.extend(around.chain([(points.first, false)]).map(filled));
    }

    /// Opens the registers all of whose lanes are blocked: they are a split again, on top.
    fn open(&mut self, warp: &WarpView) {
        if !self.may_open {
            return;
        }
        self.may_open = self.speculation.is_some();
        while let Some(index) = self.registers.iter().rposition(|r| r.blocked == r.mask) {
            let lanes = self.registers.remove(index).mask & warp.live();
            if !lanes.is_empty() {
                self.push(lanes);
            }
        }
        while let Some(lanes) = self.speculation.as_mut().and_then(Speculation::release) {
            self.push(lanes);
        }
    }
}
