//! What lanes do with the barriers of predictions ([`crate::warp::prediction`]) while they run.

use rustc_hash::FxHashMap;
use trace_format::Pc;

use crate::warp::prediction::{Deconflict, Predictions, Region, leading as leading_to};
use crate::warp::reconvergence::{Branch, Reconvergence};
use crate::{ControlFlow, Lane, LaneSet, LaneState, PlaceId, Placement, Program, Together, WarpView};

/// Where the lanes of a warp stand with the predictions.
pub(crate) struct Speculation {
    predictions: Predictions,
    /// How many of them were asked for: the others are a machine's own, which take nothing.
    asked: usize,
    /// By region: where its lanes meet behind it; none: where their function ends.
    behind: Vec<Option<Pc>>,
    /// By region.
    barriers: Vec<Barrier>,
    /// Lanes that have waited at the point at which they stand.
    passing: LaneSet,
    /// By where lanes wait, as far as it was asked for: which places lead there.
    leading: FxHashMap<PlaceId, Vec<bool>>,
    /// By region and where lanes wait: whether that conflicts.
    conflicts: FxHashMap<(usize, PlaceId), bool>,
    pub(crate) taken: Taken,
}

/// Where lanes meet behind the region of a prediction.
pub(crate) struct Behind {
    pub(crate) region: usize,
    pub(crate) at: Reconvergence,
    pub(crate) lanes: LaneSet,
}

/// The barrier of a prediction.
#[derive(Clone, Default)]
struct Barrier {
    /// Lanes that joined and have not cancelled.
    joined: LaneSet,
    waiting: LaneSet,
    /// Lanes that left it while they wait at the point of another prediction.
    elsewhere: LaneSet,
    /// By lane: the call level at which it joined.
    levels: Vec<u32>,
    /// By lane: the call level at which it last reached the point, until it comes back from there; 0 otherwise.
    within: Vec<u32>,
    /// What lanes of the split did that is brought to where it stands.
    done: Done,
}

impl Barrier {
    fn join(&mut self, lane: Lane, level: u32) {
        self.joined.insert(lane);
        self.done.joined = true;
        (self.levels[lane.index()], self.within[lane.index()]) = (level, 0);
    }

    /// Whether a lane that stands here has joined it and has reached its point.
    fn is_at(&self, region: &Region, lane: Lane, level: u32, pc: Pc) -> bool {
        let (joined, within) = (self.levels[lane.index()], self.within[lane.index()]);
        let is_level = match region.is_through() {
            true => joined < level && (within == 0 || level <= within),
            false => joined + u32::from(region.prediction.calls) == level,
        };
        region.prediction.at == pc && self.joined.contains(lane) && is_level
    }
}

/// What lanes that run together did with a barrier: one instruction each, however many lanes.
#[derive(Clone, Copy, Default)]
struct Done {
    joined: bool,
    cancelled: bool,
    waited: bool,
}

/// What predictions take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// See [`crate::Tally::barrier_operations`].
    pub(crate) operations: u64,
    /// See [`crate::Tally::wait_instructions`].
    pub(crate) instructions: u64,
}

impl Taken {
    fn add(&mut self, other: Taken) {
        self.operations += other.operations;
        self.instructions += other.instructions;
    }
}

/// They join, and the barrier behind the region too. In PTX: `activemask`, where they stand (`mov`), and a branch.
const JOIN: Taken = Taken { operations: 2, instructions: 3 };
/// They cancel, and wait at the barrier behind. In PTX: where they stand, a branch to the head of the turn, and there a
/// comparison and a branch by which they leave.
const LEAVE: Taken = Taken { operations: 2, instructions: 4 };
/// They come to the place. In PTX: where they stand, and a branch to the head of the turn.
const COME: Taken = Taken { operations: 1, instructions: 2 };
/// What a soft barrier takes besides: its lanes join the one that counts, ask how many have come, and branch on
/// whether these are enough; then the mask of those is moved (Damani et al., figure 6).
const SOFT: Taken = Taken { operations: 4, instructions: 0 };
/// They go on, and join again. In PTX: a question (`setp`, `vote`, a branch), and who goes on (`setp`, a branch).
const GO_ON: Taken = Taken { operations: 1, instructions: 5 };
/// In PTX the same of a soft barrier: `setp`, `vote`, `popc`, `setp` and a branch, and who goes on.
const GO_ON_SOFT: Taken = Taken { operations: 1, instructions: 7 };

impl Speculation {
    /// Of a program's predictions, and others behind them.
    pub(crate) fn new(program: &Program, predictions: Predictions, placement: Placement, lanes: usize) -> Speculation {
        let control_flow = &program.control_flow;
        let barrier = Barrier { levels: vec![0; lanes], within: vec![0; lanes], ..Barrier::default() };
        Speculation {
            barriers: vec![barrier; predictions.regions.len()],
            behind: predictions.regions.iter().map(|region| region.behind(placement, control_flow)).collect(),
            asked: program.predictions.regions.len(),
            predictions,
            passing: LaneSet::EMPTY,
            leading: FxHashMap::default(),
            conflicts: FxHashMap::default(),
            taken: Taken::default(),
        }
    }

    /// Whether the region of this number was asked for.
    pub(crate) fn is_asked(&self, region: usize) -> bool {
        region < self.asked
    }

    /// How many barrier registers the barriers take that some of these lanes have joined: a soft one also counts its
    /// lanes in one, and waits in another (Damani et al., figure 6).
    pub(crate) fn registers(&self, lanes: LaneSet) -> usize {
        let all = self.barriers.iter().zip(&self.predictions.regions).take(self.asked);
        let held = all.filter(|(barrier, _)| !barrier.joined.is_disjoint(&lanes));
        held.map(|(_, region)| if region.prediction.threshold.is_some() { 3 } else { 1 }).sum()
    }

    /// The lanes that wait at a predicted point.
    pub(crate) fn waiting(&self) -> LaneSet {
        self.barriers.iter().fold(LaneSet::EMPTY, |all, barrier| all | barrier.waiting)
    }

    /// These lanes have run a place: they join where predictions are made.
    pub(crate) fn ran(&mut self, lanes: LaneSet, place: PlaceId, level: u32) {
        self.passing = self.passing - lanes;
        for (barrier, region) in self.barriers.iter_mut().zip(&self.predictions.regions) {
            // Outside of the function at whose entry they waited all have one level, as the first has.
            if lanes.lowest().is_some_and(|first| level < barrier.within[first.index()]) {
                lanes.iter().for_each(|lane| barrier.within[lane.index()] = 0);
            }
            if region.begins_at(place) {
                for lane in lanes - barrier.joined - barrier.elsewhere {
                    barrier.join(lane, level);
                }
            }
        }
        self.count();
    }

    /// All lanes have run these segments, and nobody waited: they joined and cancelled on the way.
    pub(crate) fn ran_run(&mut self, run: &Together) {
        for (id, level) in run.run.iter().zip(run.levels()) {
            let segment = &run.segments[*id];
            for lane in run.lanes {
                self.come(lane, level, segment.place);
            }
            self.count();
            // Where the first begins they may have waited already.
            if self.passing.is_disjoint(&run.lanes) {
                self.pass(run.lanes, level, segment.start());
            }
            self.ran(run.lanes, segment.place, level);
        }
    }

    /// All lanes reach a place together: those that wait there for each other need not.
    fn pass(&mut self, lanes: LaneSet, level: u32, pc: Pc) {
        let Some(lane) = lanes.lowest() else { return };
        let is_there = |(barrier, region): (&Barrier, &Region)| barrier.is_at(region, lane, level, pc);
        if let Some(at) = self.barriers.iter().zip(&self.predictions.regions).position(is_there) {
            self.come_to(at);
            self.go_on_from(at);
            lanes.iter().for_each(|lane| self.barriers[at].within[lane.index()] = level);
        }
    }

    /// The other lanes have finished.
    pub(crate) fn keep(&mut self, live: LaneSet) {
        for barrier in &mut self.barriers {
            barrier.joined = barrier.joined & live;
            barrier.waiting = barrier.waiting & live;
        }
    }

    /// A lane has reached a place: it joins and cancels; the numbers of the regions that it left.
    pub(crate) fn come(&mut self, lane: Lane, at_level: u32, place: PlaceId) -> Vec<usize> {
        let mut left = Vec::new();
        for (index, (barrier, region)) in self.barriers.iter_mut().zip(&self.predictions.regions).enumerate() {
            let level = &barrier.levels[lane.index()];
            if barrier.joined.contains(lane) {
                let is_outside = !region.holds(place) || region.begins_at(place);
                if at_level < *level || at_level == *level && is_outside {
                    barrier.joined.remove(lane);
                    barrier.done.cancelled = true;
                    left.push(index);
                }
            } else if region.is_joined_at(place) && !region.begins_at(place) {
                barrier.join(lane, at_level);
            }
        }
        left
    }

    /// Whether a lane in this place, which has left these regions, left one in which others wait here: it can't come
    /// there any more.
    pub(crate) fn has_left(
        &self,
        left: &[usize],
        state: &LaneState,
        place: PlaceId,
        at: &Reconvergence,
        behind: Option<usize>,
        flow: &ControlFlow,
    ) -> bool {
        let is_left = |index: &usize| {
            let region = &self.predictions.regions[*index];
            behind != Some(*index) && !region.holds(place) && region.holds_point(at, flow)
        };
        at.level == state.level && left.iter().any(is_left)
    }

    /// By lane: how much higher its call level is than that of the first lane that ran a branch, where these run a
    /// function together to which they came through different ones; else empty.
    pub(crate) fn shifts(&self, lanes: LaneSet, branch: &Branch) -> Vec<i32> {
        let Some(first) = branch.lanes.lowest() else { return Vec::new() };
        let through = self.barriers.iter().zip(&self.predictions.regions).filter(|(_, region)| region.is_through());
        let mut found = through.filter_map(|(barrier, _)| {
            let within = |lane: Lane| barrier.within[lane.index()];
            let are_inside =
                branch.level >= within(first) && (lanes | branch.lanes).iter().all(|lane| within(lane) > 0);
            let differ = are_inside && lanes.iter().any(|lane| within(lane) != within(first));
            let shift = |within: &u32| within.cast_signed() - barrier.within[first.index()].cast_signed();
            differ.then(|| barrier.within.iter().map(shift).collect())
        });
        found.next().unwrap_or_default()
    }

    /// Whether a lane in this place, outside of the region of this number, can't come any more to where the lanes of
    /// that meet behind it.
    pub(crate) fn has_passed(&mut self, region: usize, place: PlaceId, at: &Reconvergence, flow: &ControlFlow) -> bool {
        let Some(behind) = at.pc.and_then(|pc| flow.place_at(pc)) else { return false };
        let leading = self.leading.entry(behind).or_insert_with(|| leading_to(behind, flow));
        !self.predictions.regions[region].holds(place) && !leading[place.0 as usize]
    }

    /// Has a lane wait where it now stands at a predicted point: the number of the region.
    pub(crate) fn waits(&mut self, lane: Lane, state: &LaneState) -> Option<usize> {
        if self.passing.contains(lane) {
            return None;
        }
        let is_there = |(barrier, region): (&Barrier, &Region)| barrier.is_at(region, lane, state.level, state.pc);
        let at = self.barriers.iter().zip(&self.predictions.regions).position(is_there)?;
        for (i, barrier) in self.barriers.iter_mut().enumerate() {
            if i == at {
                barrier.waiting.insert(lane);
                barrier.within[lane.index()] = state.level;
                barrier.done.waited = true;
            } else if barrier.joined.contains(lane) {
                barrier.joined.remove(lane);
                barrier.elsewhere.insert(lane);
            }
        }
        Some(at)
    }

    /// Whether some of these lanes, which run together, now reach a soft predicted point with so many, or join so many
    /// that wait there, that nobody need wait.
    pub(crate) fn is_enough(&self, lanes: LaneSet, warp: &WarpView) -> bool {
        self.enough(lanes, warp).is_some()
    }

    /// The same: the number of the region, and those who come there.
    fn enough(&self, lanes: LaneSet, warp: &WarpView) -> Option<(usize, LaneSet)> {
        self.barriers.iter().zip(&self.predictions.regions).enumerate().find_map(|(index, (barrier, region))| {
            let threshold = region.prediction.threshold?;
            let is_there = |lane: &Lane| {
                let state = warp.lane(*lane);
                !self.passing.contains(*lane) && barrier.is_at(region, *lane, state.level, state.pc)
            };
            let come: LaneSet = lanes.iter().filter(is_there).collect();
            (!come.is_empty() && come.len() + barrier.waiting.len() >= threshold).then_some((index, come))
        })
    }

    /// Lets these lanes, which are all there and enough, go on with those that wait, which are returned.
    pub(crate) fn pass_with_waiting(&mut self, lanes: LaneSet, warp: &WarpView) -> LaneSet {
        let Some((index, come)) = self.enough(lanes, warp) else { return LaneSet::EMPTY };
        self.passing = self.passing | come;
        come.iter().for_each(|lane| self.barriers[index].within[lane.index()] = warp.lane(lane).level);
        self.barriers[index].done.waited = true;
        self.count();
        match self.barriers[index].waiting.is_empty() {
            true => {
                self.go_on_from(index);
                LaneSet::EMPTY
            }
            false => self.release_at(index),
        }
    }

    /// Whether a lane that waits at a predicted point is taken off a barrier at which lanes wait here, which may be the
    /// one behind a region.
    pub(crate) fn gives_way(
        &mut self,
        lane: Lane,
        at: &Reconvergence,
        behind: Option<usize>,
        control_flow: &ControlFlow,
    ) -> bool {
        let regions = self.predictions.regions.iter().enumerate();
        self.barriers.iter().zip(regions).any(|(barrier, (index, region))| {
            let is_away = barrier.waiting.contains(lane) || barrier.elsewhere.contains(lane);
            if !is_away || behind == Some(index) {
                return false;
            }
            let (joined, within) = (barrier.levels[lane.index()], barrier.within[lane.index()]);
            // Of a function between, lanes reach whatever its barriers stand at behind the point only.
            let is_between = region.is_through() && joined < at.level && at.level < within;
            let place = at.pc.and_then(|pc| control_flow.place_at(pc));
            let (leading, conflicts) = (&mut self.leading, &mut self.conflicts);
            let mut conflicts = |place: PlaceId| {
                *conflicts.entry((index, place)).or_insert_with(|| {
                    let leading = leading.entry(place).or_insert_with(|| leading_to(place, control_flow));
                    region.conflicts_with(place, leading)
                })
            };
            is_between || at.level == joined && place.is_some_and(&mut conflicts)
        })
    }

    /// Whether lanes that wait here do so inside of the region of this number.
    pub(crate) fn is_in_region(&self, index: usize, at: &Reconvergence, control_flow: &ControlFlow) -> bool {
        self.predictions.regions[index].holds_point(at, control_flow)
    }

    /// Whether lanes that part in a place have no barrier there, since they may reach a predicted point before.
    pub(crate) fn forbids(&self, place: PlaceId, meet: Option<Pc>, control_flow: &ControlFlow) -> bool {
        let is_static = |region: &&Region| region.prediction.deconflict == Deconflict::Static;
        self.predictions.regions.iter().filter(is_static).any(|region| region.conflicts(place, meet, control_flow))
    }

    /// Counts what lanes did that run together.
    pub(crate) fn count(&mut self) {
        for (barrier, region) in self.barriers.iter_mut().zip(&self.predictions.regions).take(self.asked) {
            let Done { joined, cancelled, waited } = std::mem::take(&mut barrier.done);
            let is_soft = region.prediction.threshold.is_some();
            let all = [(joined, JOIN), (cancelled, LEAVE), (waited, COME), (waited && is_soft, SOFT)];
            all.into_iter().filter(|(is_done, _)| *is_done).for_each(|(_, taken)| self.taken.add(taken));
        }
    }

    /// Counts that lanes come to the point of this region.
    fn come_to(&mut self, index: usize) {
        if self.is_asked(index) {
            self.taken.add(COME);
            if self.is_soft(index) {
                self.taken.add(SOFT);
            }
        }
    }

    /// Counts that lanes go on from there.
    fn go_on_from(&mut self, index: usize) {
        if self.is_asked(index) {
            self.taken.add(if self.is_soft(index) { GO_ON_SOFT } else { GO_ON });
        }
    }

    fn is_soft(&self, index: usize) -> bool {
        self.predictions.regions[index].prediction.threshold.is_some()
    }

    /// Where these lanes meet behind each region in which some of them are.
    pub(crate) fn behind(&self, lanes: LaneSet) -> Vec<Behind> {
        let mut all = Vec::new();
        for (index, barrier) in self.barriers.iter().enumerate() {
            let joined = barrier.joined & lanes;
            let Some(lane) = joined.lowest() else { continue };
            let level = barrier.levels[lane.index()];
            let lanes = joined.iter().filter(|l| barrier.levels[l.index()] == level).collect();
            all.push(Behind { region: index, at: Reconvergence { pc: self.behind[index], level }, lanes });
        }
        all
    }

    /// Whether a place at which lanes wait lies inside of the region that they leave for this one.
    pub(crate) fn is_before(&self, at: &Reconvergence, behind: &Behind, control_flow: &ControlFlow) -> bool {
        let region = &self.predictions.regions[behind.region];
        at.level > behind.at.level || at.level == behind.at.level && region.holds_point(at, control_flow)
    }

    /// The lanes of a barrier that go on: all that joined it wait, or enough.
    pub(crate) fn release(&mut self) -> Option<LaneSet> {
        self.release_one(|barrier, region| {
            let is_enough = |threshold| barrier.waiting.len() >= threshold;
            barrier.waiting == barrier.joined || region.prediction.threshold.is_some_and(is_enough)
        })
    }

    /// The lanes of a barrier that go on without those they wait for, where one of them could run.
    pub(crate) fn give_up(&mut self, ready: LaneSet) -> Option<LaneSet> {
        self.release_one(|barrier, _| !barrier.waiting.is_disjoint(&ready))
    }

    fn release_one(&mut self, is_next: impl Fn(&Barrier, &Region) -> bool) -> Option<LaneSet> {
        let mut all = self.barriers.iter().zip(&self.predictions.regions);
        let index = all.position(|(barrier, region)| !barrier.waiting.is_empty() && is_next(barrier, region))?;
        Some(self.release_at(index))
    }

    fn release_at(&mut self, index: usize) -> LaneSet {
        let lanes = std::mem::take(&mut self.barriers[index].waiting);
        self.passing = self.passing | lanes;
        // They join again at once.
        self.go_on_from(index);
        for barrier in &mut self.barriers {
            barrier.joined = barrier.joined | barrier.elsewhere & lanes;
            barrier.elsewhere = barrier.elsewhere - lanes;
        }
        lanes
    }
}
