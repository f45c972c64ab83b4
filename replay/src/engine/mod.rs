//! The engine: moves the lanes of one warp, or of a block of warps, as a heuristic chooses. It knows no model.
//!
//! Lanes at the same pc form a group. A choice runs a group, or a part of one, through a whole segment. While all live
//! lanes stand in one group and the model would keep them together, runs of equal segments are found by comparing the
//! lanes' streams, and consumed at once.

mod asked;
mod counts;
mod cursor;
mod deadlock;
mod lock_cost;
mod runs_on;
mod sync;
mod turns;

use std::collections::HashMap;

use heuristics::{
    Extent, Groups, Heuristic, Lane, LaneSet, LaneState, Lead, Program, Ran, Seats, Spec, Tally, Together, WarpView,
};

pub use counts::Counts;
pub(crate) use cursor::Cursor;
pub use deadlock::{Deadlock, LockWait};
pub(crate) use lock_cost::gpu_tenths;
pub use sync::SyncEvent;
use sync::{Arrival, Sync};

use crate::lanes::brief::Brief;
use crate::metrics::{Metric, Run, Standing, Step};
use crate::survey::Survey;
use crate::warps::Unit;
use crate::{EpisodeId, Error, Locks, Result};

/// How the replay of a warp ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every lane ran to its end.
    Complete,
    /// The model would never run again.
    Deadlock(Deadlock),
}

/// The replay of one warp, or of one block of warps.
pub struct Replay<'a> {
    seats: &'a Seats,
    /// Homes that have a live lane.
    live_homes: usize,
    program: &'a Program,
    survey: &'a Survey<'a>,
    briefs: &'a [Brief],
    cursors: Vec<Cursor<'a>>,
    states: Vec<LaneState>,
    /// Instructions of the current segment that each lane has run already; other than 0 only under
    /// [`Extent::Instruction`].
    offsets: Vec<u32>,
    groups: Groups,
    live: LaneSet,
    sync: Sync,
    counts: Counts,
    /// Groups of the lanes that the model sees that is asked.
    seen_groups: Groups,
    /// How long the lanes chosen last would be chosen again.
    lead: Lead,
    /// The lanes of the launch that runs; none before the first.
    launch: Option<LaneSet>,
    /// Whether one of the lanes that moved last has come to a control, or to the end of its batch.
    met_controls: bool,
    /// Room for the segments of a run.
    run: Vec<heuristics::SegmentId>,
}

/// What came of a replay.
pub struct Replayed {
    /// What was counted.
    pub counts: Counts,
    /// How it ended.
    pub end: End,
    /// What models counted that were begun again: for turns at locks, for other teams.
    pub tally: Tally,
}

impl<'a> Replay<'a> {
    /// A warp of these lanes of the survey, or a block of warps, at their beginning, and how their locks count.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn new(
        survey: &'a Survey<'a>,
        program: &'a Program,
        briefs: &'a [Brief],
        unit: &'a Unit,
        locks: Locks,
    ) -> Result<Replay<'a>> {
        let lanes = &unit.lanes;
        let mut episodes: HashMap<EpisodeId, LaneSet, rustc_hash::FxBuildHasher> = HashMap::default();
        for (seat, lane) in lanes.iter().enumerate() {
            for episode in &survey.lanes[*lane].episodes {
                episodes.entry(*episode).or_default().insert(Lane(seat as u8));
            }
        }
        let mut posters: HashMap<EpisodeId, Lane, rustc_hash::FxBuildHasher> = HashMap::default();
        for (seat, lane) in lanes.iter().enumerate() {
            posters.extend(survey.lanes[*lane].posts.iter().map(|post| (*post, Lane(seat as u8))));
        }
        let state = LaneState {
            pc: trace_format::Pc(0),
            segment: heuristics::SegmentId(0),
            place: heuristics::PlaceId(0),
            in_stub: false,
            sp: 0,
            level: 1,
            starts_block: false,
        };
        let mut replay = Replay {
            seats: &unit.seats,
            live_homes: unit.seats.columns().len(),
            program,
            survey,
            briefs,
            cursors: lanes.iter().map(|l| Cursor::new(survey.stream(*l))).collect(),
            states: vec![state; lanes.len()],
            offsets: vec![0; lanes.len()],
            groups: Groups::default(),
            live: LaneSet::first(lanes.len()),
            sync: Sync::new(episodes, posters, locks),
            counts: Counts::new(lanes.len().min(unit.seats.width())),
            seen_groups: Groups::default(),
            lead: Lead::default(),
            launch: None,
            met_controls: false,
            run: Vec::new(),
        };
        replay.arrive(LaneSet::first(lanes.len()))?;
        Ok(replay)
    }

    /// Runs the warp, or block, to its end, or to the model's deadlock.
    ///
    /// # Errors
    /// When the trace cannot be read, or the heuristic answers with a choice that breaks the rules (a bug).
    pub fn run(
        mut self,
        spec: &Spec,
        heuristic: &mut dyn Heuristic,
        metrics: &mut [Box<dyn Metric + '_>],
    ) -> Result<Replayed> {
        let by_instruction = heuristic.extent(self.seats) == Extent::Instruction;
        let horizon = heuristic.horizon();
        let take_turns = self.sync.turns().is_some();
        let each_step = metrics.iter().any(|metric| metric.asks_each_step());
        // The model, where another team than the one before has begun: begun again.
        let mut anew: Option<Box<dyn Heuristic>> = None;
        let mut tally = Tally::default();
        while !self.live.is_empty() {
            self.tell_events(metrics);
            if self.begins_with_others() {
                let before = anew.replace(heuristics::build(spec, self.states.len(), self.program));
                before.into_iter().for_each(|before| tally.add(&before.tally()));
            }
            let heuristic = anew.as_deref_mut().unwrap_or(heuristic);
            if self.groups.is_empty() {
                let freed = match self.sync.give_up_turns() {
                    Some(freed) => freed,
                    None => self.sync.force(&mut self.counts),
                };
                self.arrive(freed)?;
                continue;
            }
            let asked = if take_turns { self.asked::<true>() } else { self.asked::<false>() };
            if horizon > 0 {
                self.read_ahead(horizon)?;
            }
            let deadlock = match asked.turn {
                None if take_turns => {
                    self.advance::<true>(asked, spec, heuristic, (by_instruction, each_step), metrics)?
                }
                None => self.advance::<false>(asked, spec, heuristic, (by_instruction, each_step), metrics)?,
                Some(turn) => self.advance_turn(asked, turn, spec, (by_instruction, each_step), metrics)?,
            };
            if let Some(lanes) = deadlock {
                anew.into_iter().for_each(|model| tally.add(&model.tally()));
                return Ok(self.replayed(End::Deadlock(self.explain(spec, lanes)), tally));
            }
        }
        self.tell_events(metrics);
        anew.into_iter().for_each(|model| tally.add(&model.tally()));
        Ok(self.replayed(End::Complete, tally))
    }

    fn replayed(&self, end: End, mut tally: Tally) -> Replayed {
        self.sync.turns().into_iter().for_each(|turns| tally.add(&turns.tally));
        Replayed { counts: self.counts.clone(), end, tally }
    }

    /// Whether a launch has just begun of others than took part in the one before, as the only ones that run. Teams of
    /// other sizes are other kernels of a GPU, so no lane has come apart from another any more.
    fn begins_with_others(&mut self) -> bool {
        let Some((episode, lanes)) = self.sync.take_opened() else { return false };
        if !self.survey.source().begins_launch(episode) || self.live - self.sync.waiting() != lanes {
            return false;
        }
        self.launch.replace(lanes).is_some_and(|before| before != lanes)
    }

    fn read_ahead(&mut self, instructions: u32) -> Result<()> {
        let ready = self.live - self.sync.waiting();
        ready.iter().try_for_each(|lane| self.cursors[lane.index()].read_ahead(instructions, self.briefs))
    }

    /// Tells the metrics what happened between lanes since the last step, and counts what it costs.
    #[inline]
    fn tell_events(&mut self, metrics: &mut [Box<dyn Metric + '_>]) {
        self.count_locks();
        for event in self.sync.events() {
            metrics.iter_mut().for_each(|metric| metric.synchronised(event));
        }
        self.sync.clear_events();
    }

    /// The warp as the models see it that know all of its lanes; these are ready.
    #[inline]
    fn view(&self, ready: LaneSet) -> WarpView<'_> {
        WarpView::new(
            &self.states,
            &self.groups,
            ready,
            self.live,
            // Lanes that take turns do not spin: for the model they wait as at a barrier.
            if self.sync.turns().is_some() { self.sync.waiting_for_post() } else { self.sync.waiting_for_lock() },
            self.seats,
            self.program,
        )
    }

    /// The rules of a choice: at least one lane, all ready, all at one pc, no two of one home. The number of their
    /// group.
    fn check(&self, spec: &Spec, lanes: LaneSet, ready: LaneSet) -> Result<usize> {
        let broken = |rule: &str| Error::Bug(format!("heuristic {spec} chose lanes {{{lanes}}}, {rule}"));
        let group = lanes
            .lowest()
            .and_then(|lane| self.groups.find(self.states[lane.index()].pc))
            .filter(|group| lanes.is_subset(&self.groups[*group].lanes))
            .filter(|_| self.sync.turns().is_none() || lanes.is_subset(&ready))
            .ok_or_else(|| broken("which are not ready at one pc"))?;
        if self.seats.fit(lanes) { Ok(group) } else { Err(broken("two with one home lane")) }
    }

    /// Runs the lanes, all of this group, through their segment, or one instruction of it.
    fn step(
        &mut self,
        group: usize,
        ran: &mut Ran,
        predicated_off: usize,
        by_instruction: bool,
        metrics: &mut [Box<dyn Metric + '_>],
    ) -> Result<()> {
        let lanes = ran.lanes;
        let first = lanes.lowest().expect("checked").index();
        let (state, offset) = (self.states[first], self.offsets[first]);
        let segment = &self.program.segments[state.segment];
        let end = if by_instruction { offset + 1 } else { segment.len() as u32 };
        let instructions = &segment.instructions[offset as usize..end as usize];
        let active = lanes.len();
        let whole = u64::from(self.briefs[state.segment.0 as usize].gpu.tenths);
        let until = |instruction: u32| whole * u64::from(instruction) / segment.len() as u64;
        let gpu_tenths = until(end) - until(offset);
        self.counts.fetched(active, active < self.live_homes, (instructions.len() as u64, gpu_tenths));
        self.counts.gpu_instructions += gpu_tenths * predicated_off as u64;
        if !metrics.is_empty() {
            let step = self.told_step(lanes, instructions);
            for metric in metrics.iter_mut() {
                metric.step(&step)?;
            }
        }
        if end as usize == segment.len() {
            self.groups.leave(group, lanes);
            for lane in lanes {
                let l = lane.index();
                let brief = &self.briefs[self.states[l].segment.0 as usize];
                self.cursors[l].pass_segment(brief, &mut self.states[l]);
                self.states[l].starts_block = segment.last().kind.transfers_control();
                self.offsets[l] = 0;
            }
            self.arrive(lanes)?;
        } else {
            let pc = segment.instructions[end as usize].pc;
            for lane in lanes {
                let l = lane.index();
                self.offsets[l] = end;
                (self.states[l].pc, self.states[l].starts_block) = (pc, false);
            }
            self.groups.leave(group, lanes);
            self.groups.join(pc, lanes);
        }
        (ran.instructions, ran.segment, ran.level) = (instructions.len() as u32, state.segment, state.level);
        ran.since_chosen = u64::from(ran.instructions);
        ran.ends_with(&instructions[instructions.len() - 1]);
        Ok(())
    }

    /// What metrics see of instructions that these lanes run.
    fn told_step<'s>(&'s self, lanes: LaneSet, instructions: &'s [trace_format::Instruction]) -> Step<'s> {
        let at_lock = self.sync.waiting_for_lock();
        let standing = Standing {
            cursors: &self.cursors,
            offsets: &self.offsets,
            states: &self.states,
            program: self.program,
            briefs: self.briefs,
            seats: self.seats,
            addresses: 0,
        };
        let at_barrier = self.sync.waiting() - at_lock;
        Step { instructions, lanes, live: self.live, at_lock, at_barrier, standing }
    }

    /// Tells metrics that these lanes run so many segments of so many instructions.
    fn tell_run(
        &self,
        lanes: LaneSet,
        segments: &[heuristics::SegmentId],
        fetches: u64,
        metrics: &mut [Box<dyn Metric + '_>],
    ) -> Result<()> {
        let first = self.told_step(lanes, &self.program.segments[segments[0]].instructions);
        let run = Run { first, segments, fetches };
        metrics.iter_mut().try_for_each(|metric| metric.ran(&run))
    }

    /// Whether all live lanes are ready at one pc, at the beginning of a segment.
    fn all_together(&self) -> bool {
        let one_group = self.groups.len() == 1 && self.groups[0].lanes == self.live;
        one_group && self.live.iter().all(|lane| self.offsets[lane.index()] == 0)
    }

    /// Consumes the longest run of whole basic blocks that all live lanes have in common in their batches, if they also
    /// have the next segment in common; false if there is no such run. That next segment is left to an ordinary step:
    /// it starts a block, so a model that remembers who led the last block chooses again.
    fn run_together(&mut self, heuristic: &mut dyn Heuristic, metrics: &mut [Box<dyn Metric + '_>]) -> Result<bool> {
        let lanes = self.live;
        let first = lanes.lowest().expect("a lane is live").index();
        let common = self.cursors[first].next_segments(cursor::common_run(&self.cursors, lanes));
        let inner = &common[..common.len().saturating_sub(1)];
        let Some(last) = inner.iter().rposition(|id| self.briefs[id.0 as usize].transfers) else { return Ok(false) };
        let ids = &inner[..=last];
        let total = cursor::RunTotal::of(ids, self.briefs);
        self.counts.fetched(lanes.len(), false, (total.instructions, total.gpu_tenths));
        self.tell_run(lanes, ids, total.instructions, metrics)?;
        let first_starts_block = lanes.iter().filter(|l| self.states[l.index()].starts_block).collect();
        for lane in lanes {
            let l = lane.index();
            self.cursors[l].pass_run(&total, &mut self.states[l]);
            self.states[l].starts_block = true;
        }
        let last_level = total.level_before_last(self.states[first].level);
        heuristic.ran(&Together {
            lanes,
            chosen: false,
            run: ids,
            last_level,
            first_starts_block,
            segments: &self.program.segments,
            control_flow: &self.program.control_flow,
        });
        self.groups.clear();
        self.arrive(lanes)?;
        Ok(true)
    }

    /// The lanes have run something, or begin, or were freed: each goes on to its next segment, its next wait, or its
    /// end; and so do those whose turn comes by that.
    fn arrive(&mut self, lanes: LaneSet) -> Result<()> {
        self.move_on(lanes)?;
        loop {
            let freed = self.sync.take_turns(&self.states, self.live);
            if freed.is_empty() {
                return Ok(());
            }
            self.move_on(freed)?;
        }
    }

    fn move_on(&mut self, lanes: LaneSet) -> Result<()> {
        let stopped = self.stand_at_segments(lanes);
        self.met_controls = !stopped.is_empty();
        if stopped.is_empty() { Ok(()) } else { self.go_through_controls(stopped) }
    }

    /// Those of the lanes that have come to a segment stand before it; the others are returned.
    #[inline]
    fn stand_at_segments(&mut self, lanes: LaneSet) -> LaneSet {
        let mut stopped = LaneSet::EMPTY;
        // Lanes that ran together mostly come to one place.
        let mut here: Option<(heuristics::SegmentId, LaneSet)> = None;
        for lane in lanes {
            let l = lane.index();
            let Some(id) = self.cursors[l].segment_here() else {
                stopped.insert(lane);
                continue;
            };
            self.stand(l, id);
            match &mut here {
                Some((same, lanes)) if *same == id => lanes.insert(lane),
                _ => {
                    if let Some((other, lanes)) = here.replace((id, LaneSet::only(lane))) {
                        self.groups.join(self.briefs[other.0 as usize].start, lanes);
                    }
                }
            }
        }
        if let Some((id, lanes)) = here {
            self.groups.join(self.briefs[id.0 as usize].start, lanes);
        }
        stopped
    }

    /// The lanes have come to controls, or to the ends of their batches.
    fn go_through_controls(&mut self, lanes: LaneSet) -> Result<()> {
        let mut arriving = lanes;
        while let Some(lane) = arriving.lowest() {
            arriving.remove(lane);
            let l = lane.index();
            match self.cursors[l].arrive(lane, &mut self.states[l], &mut self.sync)? {
                Arrival::Ready => {
                    self.set_place(l);
                    self.groups.join(self.states[l].pc, LaneSet::only(lane));
                }
                Arrival::Waits => self.set_place(l),
                Arrival::Finished => {
                    self.live.remove(lane);
                    self.live_homes = self.seats.homes_of(self.live);
                    self.sync.finished(lane);
                }
            }
            arriving = arriving | self.sync.take_freed(self.live);
        }
        Ok(())
    }

    /// The lane's segment and pc are those that it will run next.
    fn set_place(&mut self, lane: usize) {
        if let Some(id) = self.cursors[lane].next_segment() {
            self.stand(lane, id);
        }
    }

    #[inline]
    fn stand(&mut self, lane: usize, id: heuristics::SegmentId) {
        let (brief, state) = (&self.briefs[id.0 as usize], &mut self.states[lane]);
        (state.segment, state.pc, state.place, state.in_stub) = (id, brief.start, brief.place, brief.in_stub);
    }

    fn explain(&self, spec: &Spec, lanes: LaneSet) -> Deadlock {
        let waits = self.sync.locks_waited_for(lanes).into_iter().map(|(lock, waiting, holders)| {
            let mut at: Vec<trace_format::Pc> = waiting.iter().map(|lane| self.states[lane.index()].pc).collect();
            at.sort_unstable();
            at.dedup();
            LockWait { lock, name: self.survey.source().lock_name(lock), waiting, holders, at, place: None }
        });
        Deadlock { model: spec.to_string(), lanes, waits: waits.collect() }
    }
}
