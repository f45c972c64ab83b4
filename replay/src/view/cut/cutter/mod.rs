//! Cuts the stream of a thread into lanes. Each begins with stack pointer 0 and call level 1, as a thread does.

mod accesses;
mod inner_teams;
mod shown;

use std::collections::BTreeSet;

use self::inner_teams::Around;
use super::chunks::{At, Chunks};
use super::counts::{Counts, Told};
use super::iterations::loops::LoopPlan;
use super::marks::MarkPlan;
use super::pieces::{Access, Begun, Launch, Pieces};
use super::rows::{AllRows, Part, Splitter, Total};
use super::track::{Lane, Track, after};
use rustc_hash::FxHashMap;
use trace_format::Seq;

use crate::lanes::brief::Brief;
use crate::lanes::kept::Keeper;
use crate::lanes::stream::RowId;
use crate::{Batch, Code, Control, Entry, EpisodeId, LockId, Result};

/// What makes a lane.
pub(super) enum Rule<'a> {
    /// Each extent of the region.
    Extents,
    /// Each turn of these loops.
    Turns(&'a LoopPlan),
    /// What lies between marks of iterations: see [`super::marks`].
    Marks(&'a MarkPlan),
}

/// The lane that is being written.
struct Open {
    held: Vec<LockId>,
    kept: u64,
    /// How many of its accesses are remembered.
    accesses: usize,
}

/// A piece of a taskloop.
#[derive(Clone, Copy)]
struct Piece {
    taskloop: u32,
    first: i64,
    /// The level of its body's first segment, once that has come.
    level: Option<u32>,
}

/// The loop that the thread is in.
#[derive(Clone, Copy)]
struct Turning {
    of_loop: u32,
    /// The execution of a taskloop that it is a piece of.
    taskloop: Option<u32>,
    level: u32,
    /// Whether this turn reached a branch, or could have ended before it reaches one.
    is_more_than_test: bool,
    /// Whether its next turn is of another chunk.
    ends_chunk: bool,
}

/// Cuts the stream of one thread.
pub(super) struct Cutter<'a, 'k> {
    rule: Rule<'a>,
    /// So many accesses of a turn are remembered.
    most_accesses: usize,
    briefs: &'a [Brief],
    splitter: Splitter<'a>,
    track: Track<'k>,
    lanes: Vec<Begun>,
    launches: Vec<Launch>,
    accesses: Vec<Access>,
    counts: Counts,
    /// The episode that came last since a segment ran: where an extent begins then, that of its team.
    met: Option<EpisodeId>,
    /// Of lanes that begin now, except for the loop.
    launch: Launch,
    /// By loop: how often the thread reached it since the extent began, or since the last barrier.
    times: Vec<u32>,
    /// The loop whose chunks the thread is handed, and the level there.
    dispatch: Option<(u32, u32)>,
    /// What of this goes on behind each region inside of the team's that the thread is in.
    around: Vec<Around>,
    /// What it was given of a loop, and what it runs of that; of calls, the thread's last event before this one.
    chunks: Chunks,
    /// The piece of a taskloop that it runs.
    piece: Option<Piece>,
    /// What orders its part among those of all teams of a construct.
    order: u32,
    open: Option<Open>,
    /// Lanes that were left for others and may go on.
    left: FxHashMap<u32, (Open, Lane)>,
    turning: Option<Turning>,
}

impl<'a, 'k> Cutter<'a, 'k> {
    pub(super) fn new(
        (rule, most_accesses): (Rule<'a>, usize),
        (briefs, rows): (&'a [Brief], &'a AllRows<'a>),
        generation: u32,
        keeper: &'k Keeper,
    ) -> Cutter<'a, 'k> {
        let loops = if let Rule::Turns(plan) = &rule { plan.loops.len() } else { 0 };
        Cutter {
            rule,
            most_accesses,
            briefs,
            splitter: Splitter::new(rows, briefs),
            track: Track::new(keeper),
            lanes: Vec::new(),
            launches: Vec::new(),
            accesses: Vec::new(),
            counts: Counts { told: vec![Told::default(); loops], ..Counts::default() },
            met: None,
            launch: Launch { generation, ..Launch::default() },
            times: vec![0; loops],
            dispatch: None,
            around: Vec::new(),
            chunks: Chunks::default(),
            piece: None,
            order: 0,
            open: None,
            left: FxHashMap::default(),
            turning: None,
        }
    }

    /// The next piece of the thread's stream, folded.
    pub(super) fn see(&mut self, batch: &Batch) -> Result<()> {
        let (mut sps, mut addresses) = (&batch.sps[..], &batch.addresses[..]);
        for code in &batch.codes {
            if let Some(row) = code.as_row() {
                self.row(row, &mut sps, &mut addresses)?;
                continue;
            }
            match code.entry() {
                Entry::Control(index) => self.control(batch.controls[index])?,
                Entry::Segment(_) => self.segment(code, &mut sps, &mut addresses)?,
            }
        }
        Ok(())
    }

    /// The thread's stream has ended.
    pub(super) fn finish(mut self) -> Result<Pieces> {
        self.chunks.stop(self.turning.is_some());
        self.leave_loop();
        self.end_lane();
        self.compare();
        for place in self.left.keys().copied().collect::<BTreeSet<_>>() {
            self.go_on(place)?;
            self.end_lane();
        }
        let Cutter { track, lanes, launches, accesses, counts, .. } = self;
        Ok(Pieces { store: track.finish()?, lanes, launches, accesses, counts })
    }

    fn control(&mut self, control: Control) -> Result<()> {
        match control {
            Control::Sp(_) | Control::Level(_) | Control::Stack { .. } => self.track.stand(control),
            Control::Begin { after, part } => self.extent(after, part)?,
            Control::Leave(place) => {
                if let (Some(open), Some(lane)) = (self.open.take(), self.track.leave()) {
                    self.left.insert(place, (open, lane));
                }
            }
            Control::GoOn(place) => self.go_on(place)?,
            Control::Chunk { first, stride } => {
                self.compare();
                self.chunks.give(first, stride);
            }
            Control::Iterations(number) => self.chunks.tell(number),
            Control::Turns(_) => {}
            Control::Part(team) => self.begin_part(team),
            Control::PartEnd => self.end_part(),
            Control::Piece { first, taskloop } => {
                self.compare();
                self.piece = Some(Piece { taskloop, first, level: None });
                self.chunks.give_piece();
            }
            Control::Team { league, order } => {
                self.leave_loop();
                self.compare();
                (self.launch.team, self.launch.behind) = (Some(league), None);
                self.times.fill(0);
                self.dispatch = None;
                self.chunks.forget(None);
                self.order = order;
            }
            Control::Meet(episode) => {
                self.met = Some(episode);
                self.launch.behind = Some(episode);
                self.times.fill(0);
                self.counts.barriers += u64::from(self.open.is_some());
            }
            Control::MeetAll => self.counts.barriers += u64::from(self.open.is_some()),
            Control::Post(_) | Control::Await(_) => {
                if self.open.is_some() {
                    self.track.control(control);
                }
            }
            Control::Acquire(lock) | Control::AcquireShared(lock) | Control::AcquireOneOf { lock, .. } => {
                if let Some(open) = &mut self.open {
                    open.held.push(lock);
                    self.track.control(control);
                }
            }
            Control::Release(lock) => {
                // Another lane's lock, taken before this one began, is none of this one's.
                let held = self.open.as_mut().map(|open| &mut open.held);
                if let Some(held) = held
                    && let Some(at) = held.iter().rposition(|one| *one == lock)
                {
                    held.remove(at);
                    self.track.control(control);
                }
            }
        }
        Ok(())
    }

    /// An extent of the region begins.
    fn extent(&mut self, after: Seq, part: u32) -> Result<()> {
        self.leave_loop();
        self.end_lane();
        self.compare();
        (self.launch.team, self.launch.behind) = (self.met.take(), None);
        self.times.fill(0);
        self.dispatch = None;
        self.chunks.forget(None);
        (self.piece, self.order) = (None, 0);
        self.around.clear();
        if matches!(self.rule, Rule::Extents) {
            self.chunks.forget(Some((after.0 as i64, 0)));
            self.begin_lane(Launch { generation: self.launch.generation, ..Launch::default() })?;
            if let Some(lane) = self.lanes.last_mut().filter(|_| part > 0) {
                lane.part = part;
                self.track.is_further();
            }
        }
        Ok(())
    }

    /// The lane that was left there goes on.
    fn go_on(&mut self, place: u32) -> Result<()> {
        self.end_lane();
        if let Some((open, lane)) = self.left.remove(&place) {
            self.track.go_on(lane)?;
            self.open = Some(open);
        }
        Ok(())
    }

    /// The thread runs a row of segments: in parts, as they are of one lane or another.
    fn row(&mut self, row: RowId, sps: &mut &[i64], addresses: &mut &[u64]) -> Result<()> {
        let whole = self.splitter.whole(row);
        let lowest = i64::from(self.track.level()) + i64::from(whole.total.lowest);
        if lowest < 1 {
            return self.splitter.segments(row).iter().try_for_each(|code| self.segment(code, sps, addresses));
        }
        self.come();
        let Rule::Turns(plan) = self.rule else { return self.part(whole, sps, addresses) };
        let turning = self.turning.map(|turning| (turning.of_loop, i64::from(turning.level)));
        if turning.is_some_and(|(_, level)| lowest > level) {
            return self.part(whole, sps, addresses);
        }
        if !plan.shown.is_empty() {
            return self.splitter.segments(row).iter().try_for_each(|code| self.segment(code, sps, addresses));
        }
        let standing = turning.map(|(of_loop, level)| (of_loop, (i64::from(self.track.level()) - level) as i32));
        for number in self.splitter.parts(row, standing, plan) {
            let part = self.splitter.of(number);
            if part.turns
                && let Some(first) = part.first()
            {
                self.turn(plan, &self.briefs[first.0 as usize])?;
            }
            match &mut self.turning {
                Some(turning) => turning.is_more_than_test |= part.is_more_than_test,
                None => self.leave_dispatch(plan, part.segments),
            }
            self.part(part, sps, addresses)?;
        }
        Ok(())
    }

    /// A segment comes.
    #[inline]
    fn come(&mut self) {
        self.met = None;
        if let Some(piece) = &mut self.piece {
            // It has ended where the thread is further out than its body.
            match piece.level {
                Some(level) if self.track.level() < level => self.piece = None,
                Some(_) => {}
                None => piece.level = Some(self.track.level()),
            }
        }
    }

    /// The thread, which is in no loop, runs these segments: perhaps it has got all of a loop's chunks.
    fn leave_dispatch(&mut self, plan: &LoopPlan, segments: &[Code]) {
        let Some((of_loop, of_chunks)) = self.dispatch else { return };
        let mut level = self.track.level();
        for id in segments.iter().filter_map(|code| code.as_segment()) {
            let brief = &self.briefs[id.0 as usize];
            let is_in = plan.of[brief.place.0 as usize].in_dispatch.contains(&of_loop);
            if level < of_chunks || level == of_chunks && !is_in {
                self.dispatch = None;
                return;
            }
            level = after(level, brief.level.into());
        }
    }

    /// The thread runs a part of a row, through which the lane's level does not sink below that of its beginning.
    fn part(&mut self, part: Part, sps: &mut &[i64], addresses: &mut &[u64]) -> Result<()> {
        let lowest = i64::from(self.track.level()) + i64::from(part.total.lowest);
        if lowest >= i64::from(self.track.base()) {
            return self.run(part.code, part.segments, &part.total, sps, addresses);
        }
        for code in part.segments {
            if let Some(id) = code.as_segment() {
                let total = Total::of(&self.briefs[id.0 as usize]);
                self.run(*code, std::slice::from_ref(code), &total, sps, addresses)?;
            }
        }
        Ok(())
    }

    fn segment(&mut self, code: &Code, sps: &mut &[i64], addresses: &mut &[u64]) -> Result<()> {
        let Some(id) = code.as_segment() else { return Ok(()) };
        let brief = &self.briefs[id.0 as usize];
        self.come();
        if let Rule::Turns(plan) = self.rule {
            self.turn(plan, brief)?;
            if let Some(shown) = plan.shown.get(&id)
                && self.turning.is_some_and(|t| t.of_loop == shown.of_loop && t.level == self.track.level())
            {
                return self.show(shown, brief, sps, addresses);
            }
        }
        self.run(*code, std::slice::from_ref(code), &Total::of(brief), sps, addresses)
    }

    /// The thread runs these segments, for which the code stands.
    fn run(
        &mut self,
        code: Code,
        segments: &[Code],
        total: &Total,
        sps: &mut &[i64],
        addresses: &mut &[u64],
    ) -> Result<()> {
        let level = self.track.level();
        let accessed = self.track.run((code, segments.len()), total, sps, addresses);
        self.counts.mathematics[usize::from(self.open.is_none())] += total.mathematics;
        let Some(open) = &mut self.open else {
            self.counts.outside += total.instructions;
            return Ok(());
        };
        open.kept += total.instructions;
        if self.turning.is_none_or(|turning| turning.is_more_than_test) {
            self.track.is_sure()?;
        }
        self.remember((segments, level), accessed);
        Ok(())
    }

    /// Before a segment: whether a turn of a loop ends or begins with it.
    fn turn(&mut self, plan: &LoopPlan, brief: &Brief) -> Result<()> {
        let place = &plan.of[brief.place.0 as usize];
        if let Some(turning) = self.turning {
            if self.track.level() > turning.level {
                return Ok(());
            }
            if self.track.level() < turning.level || !place.in_loops.contains(&turning.of_loop) {
                self.leave_loop();
            }
        }
        if let Some((of_loop, level)) = self.dispatch
            && (self.track.level() < level || self.track.level() == level && !place.in_dispatch.contains(&of_loop))
        {
            self.dispatch = None;
        }
        match (&mut self.turning, place.enters) {
            (Some(turning), _) if place.aside == Some(turning.of_loop) => {
                turning.ends_chunk |= place.ends_chunk;
                self.end_lane();
            }
            (Some(turning), enters)
                if place.heads == Some(turning.of_loop)
                    || self.open.is_none() && enters == Some(turning.of_loop) && !place.is_shown =>
            {
                turning.is_more_than_test = plan.loops[turning.of_loop as usize];
                let ends_chunk = std::mem::take(&mut turning.ends_chunk);
                let turning = *turning;
                if ends_chunk || plan.turns_are_chunks[turning.of_loop as usize] {
                    self.take_chunk(plan, turning.of_loop, false);
                }
                let launch = self.launch_of(turning);
                self.end_lane();
                self.begin_lane(launch)?;
            }
            (Some(turning), _) => turning.is_more_than_test |= !place.in_tests.contains(&turning.of_loop),
            (None, Some(of_loop)) => {
                let level = self.track.level();
                let piece = self.piece.filter(|p| p.level == Some(level) && plan.outermost[of_loop as usize]);
                if let Some(piece) = piece {
                    self.counts.entries += 1;
                    self.take_chunk(plan, of_loop, true);
                    self.chunks.forget(Some((piece.first, 0)));
                } else if self.dispatch != Some((of_loop, level)) {
                    self.times[of_loop as usize] += 1;
                    self.counts.entries += 1;
                    self.dispatch = place.in_dispatch.contains(&of_loop).then_some((of_loop, level));
                    self.take_chunk(plan, of_loop, true);
                } else {
                    self.take_chunk(plan, of_loop, false);
                }
                let is_more_than_test = plan.loops[of_loop as usize];
                let taskloop = piece.map(|piece| piece.taskloop);
                let turning =
                    *self.turning.insert(Turning { of_loop, taskloop, level, is_more_than_test, ends_chunk: false });
                if !place.is_shown {
                    self.begin_lane(self.launch_of(turning))?;
                }
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// The thread begins another chunk, or the first one, of this loop.
    fn take_chunk(&mut self, plan: &LoopPlan, of_loop: u32, is_first: bool) {
        let at = At { of_loop, lanes: self.lanes.len(), in_chunks: plan.in_chunks[of_loop as usize] };
        match is_first {
            true => self.chunks.begin(at, &mut self.counts),
            false => self.chunks.next(at, &mut self.counts),
        }
    }

    /// The chunk that the thread ran has ended, unless it is still in the loop.
    fn compare(&mut self) {
        if self.turning.is_none() {
            self.chunks.end(self.lanes.len(), &mut self.counts);
        }
    }

    /// The launch of the loop's turns now.
    fn launch_of(&self, Turning { of_loop, taskloop, .. }: Turning) -> Launch {
        match taskloop {
            None => Launch { time: self.times[of_loop as usize], of_loop, ..self.launch },
            Some(_) => Launch { generation: self.launch.generation, taskloop, of_loop, ..Launch::default() },
        }
    }

    /// The thread is in no loop any more. A turn that left by the first branch it reached did nothing but find that
    /// there are no more.
    fn leave_loop(&mut self) {
        let Some(turning) = self.turning.take() else { return };
        if turning.is_more_than_test {
            self.end_lane();
        } else if let Some(open) = self.open.take() {
            if self.chunks.are_untold() {
                self.counts.told[turning.of_loop as usize].untold -= 1;
            }
            self.track.take_back();
            self.counts.last_tests += open.kept;
            self.lanes.pop();
            self.accesses.truncate(self.accesses.len() - open.accesses);
        }
    }

    fn begin_lane(&mut self, launch: Launch) -> Result<()> {
        let stretch = self.track.begin(None)?;
        let first = self.chunks.runs.map(|(first, _)| first);
        if let Some(turning) = self.turning.filter(|_| self.chunks.are_untold()) {
            self.counts.told[turning.of_loop as usize].untold += 1;
        }
        if self.launches.last() != Some(&launch) {
            self.launches.push(launch);
        }
        let launch = self.launches.len() as u32 - 1;
        self.lanes.push(Begun { stretch, launch, team: self.order, chunk: self.chunks.number, first, part: 0 });
        self.open = Some(Open { held: Vec::new(), kept: 0, accesses: 0 });
        Ok(())
    }

    /// The lane ends. Locks that it still holds are free for others.
    fn end_lane(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.counts.kept += open.kept;
        open.held.iter().rev().for_each(|lock| self.track.control(Control::Release(*lock)));
        self.track.end();
    }
}
