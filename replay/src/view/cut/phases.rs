//! Cuts lanes of any kind into phases: one up to the first visit of a place, then one from each visit to the next.
//! Stack pointers and call levels stay those of the whole lane, so that a model sees lanes where they stand.

use std::collections::hash_map::Entry as Slot;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::rows::{AllRows, Splitter, Total};
use super::store::{Lane, Store};
use super::track::Track;
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
    /// What they name.
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
        // Those of a source name the same rows.
        let named = if source.lanes() > 0 { survey.stream(0).rows() } else { Arc::default() };
        let rows = AllRows::new(&named);
        let of_share = |first: usize| {
            let lanes = first..(first + share).min(source.lanes());
            let (splitter, track) = (Splitter::new(&rows, &briefs), Track::new(&keeper));
            Cutter { briefs: &briefs, heads, splitter, track, begun: Vec::new(), met: Vec::new() }
                .cut(survey, lanes, &named)
        };
        let cut: Vec<(Store, Vec<Begun>, Vec<Met>)> = shares.into_par_iter().map(of_share).collect::<Result<_>>()?;
        let rows = Arc::new(rows.finish());
        let mut phases = Phases { stores: Vec::with_capacity(cut.len()), rows, all: Vec::new() };
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
        Box::new(Lane::new((&self.stores, &[], &self.rows), phase.at))
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
    splitter: Splitter<'a>,
    track: Track<'k>,
    begun: Vec<Begun>,
    met: Vec<Met>,
}

impl Cutter<'_, '_> {
    fn cut(mut self, survey: &Survey, lanes: Range<usize>, named: &Arc<Rows>) -> Result<(Store, Vec<Begun>, Vec<Met>)> {
        let mut batch = Batch::default();
        for lane in lanes {
            let mut stream = survey.stream(lane);
            let is_folded = Arc::ptr_eq(&stream.rows(), named);
            let mut reading = Reading { lane, ..Reading::default() };
            self.track.restart();
            self.begin(&mut reading)?;
            while if is_folded { stream.next_folded(&mut batch)? } else { stream.next_batch(&mut batch)? } {
                self.see(&batch, &mut reading, survey)?;
            }
            self.end(&reading);
        }
        Ok((self.track.finish()?, self.begun, self.met))
    }

    fn see(&mut self, batch: &Batch, lane: &mut Reading, survey: &Survey) -> Result<()> {
        let (mut sps, mut addresses) = (&batch.sps[..], &batch.addresses[..]);
        for code in &batch.codes {
            if let Some(row) = code.as_row() {
                for number in self.splitter.parts_at(row, self.heads) {
                    let part = self.splitter.of(number);
                    if part.turns {
                        self.visit(lane, survey)?;
                    }
                    // Levels below the first do not add up.
                    if i64::from(self.track.level()) + i64::from(part.total.lowest) >= 1 {
                        self.run((part.code, part.segments.len()), &part.total, (&mut sps, &mut addresses), lane)?;
                        continue;
                    }
                    for code in part.segments {
                        self.segment(*code, (&mut sps, &mut addresses), lane)?;
                    }
                }
                continue;
            }
            match code.entry() {
                Entry::Control(index) => self.control(batch.controls[index], lane),
                Entry::Segment(id) => {
                    if self.heads[self.briefs[id.0 as usize].place.0 as usize] {
                        self.visit(lane, survey)?;
                    }
                    self.segment(*code, (&mut sps, &mut addresses), lane)?;
                }
            }
        }
        Ok(())
    }

    /// The lane comes to the place.
    fn visit(&mut self, lane: &mut Reading, survey: &Survey) -> Result<()> {
        lane.is_free(survey)?;
        self.end(lane);
        lane.visit += 1;
        self.begin(lane)
    }

    fn control(&mut self, control: Control, lane: &mut Reading) {
        match control {
            Control::Sp(_) | Control::Level(_) | Control::Stack { .. } => self.track.stand(control),
            Control::Meet(episode) => {
                self.met.push(Met { lane: lane.lane, visit: lane.visit, episode: (Some(episode), 0) });
                self.track.control(control);
            }
            Control::MeetAll => {
                self.met.push(Met { lane: lane.lane, visit: lane.visit, episode: (None, lane.meet_alls) });
                lane.meet_alls += 1;
                self.track.control(control);
            }
            Control::Post(_) | Control::Await(_) => self.track.control(control),
            Control::Acquire(lock) | Control::AcquireShared(lock) | Control::AcquireOneOf { lock, .. } => {
                lane.held.push(lock);
                self.track.control(control);
            }
            Control::Release(lock) => {
                if let Some(at) = lane.held.iter().rposition(|held| *held == lock) {
                    lane.held.remove(at);
                }
                self.track.control(control);
            }
            // Those are in the streams of threads that are yet to be cut into lanes.
            Control::Begin { .. } | Control::Team { .. } | Control::Chunk { .. } | Control::Piece { .. } => {}
            Control::Leave(_) | Control::GoOn(_) => {}
            Control::Iterations(_) | Control::Turns(_) | Control::Part(_) | Control::PartEnd => {}
        }
    }

    fn segment(&mut self, code: Code, of: (&mut &[i64], &mut &[u64]), lane: &mut Reading) -> Result<()> {
        let Some(id) = code.as_segment() else { return Ok(()) };
        self.run((code, 1), &Total::of(&self.briefs[id.0 as usize]), of, lane)
    }

    fn run(
        &mut self,
        code: (Code, usize),
        total: &Total,
        (sps, addresses): (&mut &[i64], &mut &[u64]),
        lane: &mut Reading,
    ) -> Result<()> {
        self.track.run(code, total, sps, addresses);
        lane.runs = true;
        self.track.is_sure()
    }

    fn begin(&mut self, lane: &mut Reading) -> Result<()> {
        self.track.begin(Some((0, 1)))?;
        self.begun.push((lane.lane, lane.visit));
        lane.runs = false;
        Ok(())
    }

    fn end(&mut self, lane: &Reading) {
        if lane.runs {
            self.track.end();
        } else {
            self.begun.pop();
            self.track.take_back();
        }
    }
}

/// What is known of the lane that is read, and of its phase.
#[derive(Default)]
struct Reading {
    lane: usize,
    visit: u32,
    meet_alls: u32,
    held: Vec<LockId>,
    /// Whether anything ran since its phase began.
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
