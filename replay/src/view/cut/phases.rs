//! Cuts lanes of any kind into phases: one up to the first visit of a place, then one from each visit to the next.
//! Stack pointers and call levels stay those of the whole lane, so that a model sees lanes where they stand.

use std::collections::hash_map::Entry as Slot;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::cutter::after;
use super::store::{Store, Writer};
use crate::lanes::brief::Brief;
use crate::lanes::kept::Keeper;
use crate::survey::Survey;
use crate::{Batch, Code, Control, Entry, EpisodeId, Error, LaneStream, LockId, Result, Rows};

/// A phase of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Phase {
    /// The lane.
    pub lane: usize,
    /// How many visits of the place the lane had made before it ended: 0 up to the first visit.
    pub visit: u32,
    /// Where its stream is: a store, and a number there.
    at: (u32, u32),
}

/// The phases of all lanes, those of a lane in a row; such as run nothing are left out.
pub(crate) struct Phases {
    stores: Vec<Store>,
    /// None: phases are written segment by segment.
    rows: Arc<Rows>,
    all: Vec<Phase>,
}

impl Phases {
    /// Cuts all lanes. `heads` are the places, by number, at whose segments a visit begins.
    ///
    /// # Errors
    /// When the trace cannot be read, or lanes would wait for each other across a visit.
    pub fn cut(survey: &Survey, heads: &[bool]) -> Result<Phases> {
        let source = survey.source();
        let briefs = Brief::all(source.segments());
        let keeper = Keeper::beside((0..source.lanes()).filter_map(|lane| source.kept(lane)));
        let share = source.lanes().div_ceil(4 * rayon::current_num_threads()).max(1);
        let shares: Vec<usize> = (0..source.lanes()).step_by(share).collect();
        let of_share = |first: usize| {
            let lanes = first..(first + share).min(source.lanes());
            Cutter { briefs: &briefs, heads, writer: Writer::new(&keeper), begun: Vec::new(), met: Vec::new() }
                .cut(survey, lanes)
        };
        let cut: Vec<(Store, Vec<Begun>, Vec<Met>)> = shares.into_par_iter().map(of_share).collect::<Result<_>>()?;
        let mut phases = Phases { stores: Vec::with_capacity(cut.len()), rows: Arc::default(), all: Vec::new() };
        let mut meetings = FxHashMap::default();
        for (number, (store, begun, met)) in cut.into_iter().enumerate() {
            let phase = |(at, (lane, visit)): (usize, Begun)| Phase { lane, visit, at: (number as u32, at as u32) };
            phases.all.extend(begun.into_iter().enumerate().map(phase));
            phases.stores.push(store);
            met.into_iter().try_for_each(|met| is_together(&mut meetings, source.generation(met.lane), met))?;
        }
        Ok(phases)
    }

    /// All of them.
    pub fn all(&self) -> &[Phase] {
        &self.all
    }

    /// A phase's stream from its beginning.
    pub fn stream(&self, phase: &Phase) -> Box<dyn LaneStream + '_> {
        Box::new(self.stores[phase.at.0 as usize].stream(phase.at.1 as usize, &self.rows))
    }
}

/// A lane, and the visits before its phase.
type Begun = (usize, u32);

/// A lane came to a barrier.
struct Met {
    lane: usize,
    visit: u32,
    /// None of the barrier of all lanes of a warp: the lane's i-th one.
    episode: (Option<EpisodeId>, u32),
}

/// Who came to an episode of a launch first, and after how many visits.
type Meetings = FxHashMap<(u32, Option<EpisodeId>, u32), Begun>;

/// Whether all lanes come to a barrier between the same visits: those that are regrouped at one would otherwise wait
/// for lanes that wait for them.
fn is_together(meetings: &mut Meetings, generation: u32, met: Met) -> Result<()> {
    match meetings.entry((generation, met.episode.0, met.episode.1)) {
        Slot::Vacant(slot) => {
            slot.insert((met.lane, met.visit));
            Ok(())
        }
        Slot::Occupied(slot) if slot.get().1 == met.visit => Ok(()),
        Slot::Occupied(slot) => Err(Error::Request(format!(
            "--reorder: lanes {} and {} wait for each other at a barrier that one comes to after {} visits of the \
             place, the other after {}: they cannot be regrouped between. Choose a place that all lanes come to equally \
             often between two barriers",
            slot.get().0,
            met.lane,
            slot.get().1,
            met.visit
        ))),
    }
}

/// Cuts some of the lanes.
struct Cutter<'a, 'k> {
    briefs: &'a [Brief],
    heads: &'a [bool],
    writer: Writer<'k>,
    begun: Vec<Begun>,
    met: Vec<Met>,
}

impl Cutter<'_, '_> {
    fn cut(mut self, survey: &Survey, lanes: Range<usize>) -> Result<(Store, Vec<Begun>, Vec<Met>)> {
        let mut batch = Batch::default();
        for lane in lanes {
            let mut stream = survey.stream(lane);
            let mut reading = Reading { lane, level: 1, ..Reading::default() };
            self.begin(&mut reading)?;
            while stream.next_batch(&mut batch)? {
                self.see(&batch, &mut reading, survey)?;
            }
            self.end(&reading);
        }
        Ok((self.writer.finish()?, self.begun, self.met))
    }

    fn see(&mut self, batch: &Batch, lane: &mut Reading, survey: &Survey) -> Result<()> {
        let (mut sps, mut addresses) = (batch.sps.iter(), &batch.addresses[..]);
        for code in &batch.codes {
            match code.entry() {
                Entry::Control(index) => self.control(batch.controls[index], lane),
                Entry::Segment(id) => {
                    let brief = &self.briefs[id.0 as usize];
                    let (own, rest) = addresses.split_at(brief.addresses as usize);
                    addresses = rest;
                    if self.heads[brief.place.0 as usize] {
                        lane.is_free(survey)?;
                        self.end(lane);
                        lane.visit += 1;
                        self.begin(lane)?;
                    }
                    let recorded = if brief.recorded { sps.next().copied() } else { None };
                    self.segment(*code, (brief, recorded, own), lane)?;
                }
            }
        }
        Ok(())
    }

    fn control(&mut self, control: Control, lane: &mut Reading) {
        match control {
            Control::Sp(sp) => lane.sp = sp,
            Control::Level(level) => lane.level = level,
            Control::Stack { .. } => {
                lane.stack = Some(control);
                lane.stack_is_due = true;
            }
            Control::Meet(episode) => {
                self.met.push(Met { lane: lane.lane, visit: lane.visit, episode: (Some(episode), 0) });
                self.writer.control(control);
            }
            Control::MeetAll => {
                self.met.push(Met { lane: lane.lane, visit: lane.visit, episode: (None, lane.meet_alls) });
                lane.meet_alls += 1;
                self.writer.control(control);
            }
            Control::Acquire(lock) | Control::AcquireShared(lock) => {
                lane.held.push(lock);
                self.writer.control(control);
            }
            Control::Release(lock) => {
                if let Some(at) = lane.held.iter().rposition(|held| *held == lock) {
                    lane.held.remove(at);
                }
                self.writer.control(control);
            }
            // Those are in the streams of threads that are yet to be cut into lanes.
            Control::Begin { .. } | Control::Team { .. } | Control::Chunk { .. } => {}
        }
    }

    fn segment(
        &mut self,
        code: Code,
        (brief, recorded, addresses): (&Brief, Option<i64>, &[u64]),
        lane: &mut Reading,
    ) -> Result<()> {
        if std::mem::take(&mut lane.stack_is_due)
            && let Some(stack) = lane.stack
        {
            self.writer.control(stack);
        }
        if lane.sp != lane.expected.0 {
            self.writer.control(Control::Sp(lane.sp));
        }
        if lane.level != lane.expected.1 {
            self.writer.control(Control::Level(lane.level));
        }
        self.writer.ran(code, 1, recorded.into_iter(), addresses);
        self.writer.is_sure()?;
        lane.runs = true;
        lane.sp = recorded.unwrap_or(lane.sp + i64::from(brief.sp));
        lane.level = after(lane.level, i32::from(brief.level));
        lane.expected = (lane.sp, lane.level);
        Ok(())
    }

    fn begin(&mut self, lane: &mut Reading) -> Result<()> {
        self.writer.begin()?;
        self.begun.push((lane.lane, lane.visit));
        lane.expected = (0, 1);
        lane.runs = false;
        lane.stack_is_due = lane.stack.is_some();
        Ok(())
    }

    fn end(&mut self, lane: &Reading) {
        if !lane.runs {
            self.begun.pop();
            self.writer.take_back();
        }
    }
}

/// What is known of the lane that is read, and of its phase.
#[derive(Default)]
struct Reading {
    lane: usize,
    visit: u32,
    sp: i64,
    level: u32,
    stack: Option<Control>,
    meet_alls: u32,
    held: Vec<LockId>,
    /// What the replay makes of the phase's stream.
    expected: (i64, u32),
    stack_is_due: bool,
    runs: bool,
}

impl Reading {
    /// Refuses a visit at which the lane has a lock.
    fn is_free(&self, survey: &Survey) -> Result<()> {
        let Some(lock) = self.held.last() else { return Ok(()) };
        Err(Error::Request(format!(
            "--reorder: lane {} has {} at its visit {} of the place: lanes that want it would wait for one \
             that is being regrouped. Choose a place outside of the critical section, or leave locks out with --locks \
             ignore",
            self.lane,
            survey.source().lock_name(*lock),
            self.visit + 1
        )))
    }
}
