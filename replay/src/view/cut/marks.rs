//! Cuts the stream of a thread at marks of iterations, which `lockstep cc` puts into code: a lane begins with the first
//! instruction at a mark and ends before the one at the mark of its end, or where the thread returns from the function.
//! Marks further in, of a loop that the lane runs as a part of it, change nothing.
//!
//! ```text
//! begin  …  end  …  begin  …  call: begin … end  …  end
//! └ lane 0 ┘        └ lane 1 ─────────────────────┘
//! ```
//!
//! Lanes of one launch are those of threads of one team that have called the same place in the code for their part of a
//! loop, equally often since the last barrier.

use std::sync::atomic::{AtomicU8, Ordering};

use heuristics::{SegmentId, SegmentTable};
use rustc_hash::FxHashMap;
use trace_format::{Marker, Pc};

use super::counts::Counts;
use super::pieces::{Begun, Launch, Pieces};
use super::rows::{AllRows, Part, Splitter, Total};
use super::store::Store;
use super::track::Track;
use crate::lanes::brief::Brief;
use crate::lanes::kept::Keeper;
use crate::lanes::stream::RowId;
use crate::{Batch, Code, Control, Entry, EpisodeId, LaneOrigin, LockId, Result};

/// What the code at a place is to marked iterations.
#[derive(Clone, Copy, Default)]
struct Role {
    mark: Option<Marker>,
    /// The number of the call there that begins a loop, from 1; 0 where there is none.
    begins_loop: u32,
}

/// Where marks are, by place.
pub(super) struct MarkPlan {
    of: Vec<Role>,
    /// Whether there is anything to do at the place.
    heads: Vec<bool>,
    /// The calls, by number less 1.
    calls: Vec<Pc>,
    /// By call: whether a thread was given iterations there, as [`GIVEN`], and whether it ran marked ones, as [`RAN`].
    seen: Vec<AtomicU8>,
}

/// See [`MarkPlan::seen`].
const GIVEN: u8 = 1;
const RAN: u8 = 2;

impl MarkPlan {
    /// With marks at these addresses, each at the beginning of a segment; `begins_loop` says it of a segment's call.
    pub(super) fn new(
        segments: &SegmentTable,
        marks: &FxHashMap<Pc, Marker>,
        begins_loop: &dyn Fn(SegmentId) -> bool,
    ) -> MarkPlan {
        let places = segments.iter().map(|(_, segment)| segment.place.0 as usize + 1).max().unwrap_or(0);
        let (mut of, mut calls) = (vec![Role::default(); places], FxHashMap::default());
        for (id, segment) in segments.iter() {
            let role = &mut of[segment.place.0 as usize];
            role.mark = role.mark.or_else(|| marks.get(&segment.start()).copied());
            if begins_loop(id) {
                let next = calls.len() as u32 + 1;
                role.begins_loop = *calls.entry(segment.last().pc).or_insert(next);
            }
        }
        let heads = of.iter().map(|role| role.mark.is_some() || role.begins_loop > 0).collect();
        let mut by_number: Vec<(u32, Pc)> = calls.into_iter().map(|(pc, number)| (number, pc)).collect();
        by_number.sort_unstable();
        let seen = by_number.iter().map(|_| AtomicU8::default()).collect();
        MarkPlan { of, heads, calls: by_number.into_iter().map(|(_, pc)| pc).collect(), seen }
    }

    fn see(&self, call: u32, what: u8) {
        if let Some(seen) = self.seen.get((call as usize).wrapping_sub(1)) {
            seen.fetch_or(what, Ordering::Relaxed);
        }
    }

    /// The calls that gave iterations to threads which ran none with marks.
    pub(super) fn without_marks(&self) -> Vec<Pc> {
        let is_one = |(_, seen): &(&Pc, &AtomicU8)| seen.load(Ordering::Relaxed) == GIVEN;
        self.calls.iter().zip(&self.seen).filter(is_one).map(|(pc, _)| *pc).collect()
    }
}

/// The lane that is being written.
struct Open {
    held: Vec<LockId>,
    kept: u64,
    /// The level of the mark that it began with, and of those further in that have not ended.
    levels: Vec<u32>,
}

/// Iterations that the thread was given.
#[derive(Clone, Copy)]
struct Given {
    first: i64,
    stride: u32,
    /// How many follow each other; 0 if that is unknown.
    turns: u64,
    /// How many of them have begun.
    begun: u64,
}

/// A piece of a taskloop.
#[derive(Clone, Copy)]
struct Piece {
    taskloop: u32,
    first: i64,
    /// The level of its body's first segment, once that has come.
    level: Option<u32>,
}

/// A loop that the thread has begun.
#[derive(Clone, Copy, Default)]
struct Loop {
    level: u32,
    /// The number of the call.
    call: u32,
    time: u32,
}

/// The work of a team, or of a thread alone, that the thread has a part in.
#[derive(Default)]
struct Work {
    /// Of lanes that begin now, except for the loop.
    launch: Launch,
    /// By call that begins a loop: how often the thread made it since its team was last at a barrier.
    times: Vec<u32>,
    given: Option<Given>,
    piece: Option<Piece>,
    /// What orders its part among those of all teams of a construct.
    order: u32,
}

/// Cuts the stream of one thread.
pub(super) struct MarkCutter<'a, 'k> {
    plan: &'a MarkPlan,
    briefs: &'a [Brief],
    splitter: Splitter<'a>,
    track: Track<'k>,
    lanes: Vec<Begun>,
    launches: Vec<Launch>,
    counts: Counts,
    thread: u32,
    /// How often it began work that no other thread has a part in.
    alone: u32,
    work: Work,
    /// Work around that.
    around: Vec<Work>,
    /// How much work has begun in the lane that is open.
    inside: u32,
    /// The loops that it is in, the innermost last.
    loops: Vec<Loop>,
    open: Option<Open>,
}

impl<'a, 'k> MarkCutter<'a, 'k> {
    pub(super) fn new(
        plan: &'a MarkPlan,
        (briefs, rows): (&'a [Brief], &'a AllRows<'a>),
        origin: &LaneOrigin,
        keeper: &'k Keeper,
    ) -> MarkCutter<'a, 'k> {
        MarkCutter {
            plan,
            briefs,
            splitter: Splitter::new(rows, briefs),
            track: Track::new(keeper),
            lanes: Vec::new(),
            launches: Vec::new(),
            counts: Counts::default(),
            thread: origin.thread.0,
            alone: 0,
            work: Work {
                launch: Launch { generation: origin.generation, ..Launch::default() },
                times: vec![0; plan.calls.len() + 1],
                ..Work::default()
            },
            around: Vec::new(),
            inside: 0,
            loops: Vec::new(),
            open: None,
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
                Entry::Control(index) => self.control(batch.controls[index]),
                Entry::Segment(_) => self.segment(code, &mut sps, &mut addresses)?,
            }
        }
        Ok(())
    }

    /// The thread's stream has ended.
    pub(super) fn finish(mut self) -> Result<Pieces> {
        self.end_lane();
        let MarkCutter { track, lanes, launches, counts, .. } = self;
        let store: Store = track.finish()?;
        Ok(Pieces { store, lanes, launches, accesses: Vec::new(), counts })
    }

    fn control(&mut self, control: Control) {
        match (control, &mut self.open) {
            (Control::Sp(_) | Control::Level(_) | Control::Stack { .. }, _) => self.track.stand(control),
            (Control::Meet(_) | Control::MeetAll, Some(_)) => self.counts.barriers += 1,
            (Control::Post(_) | Control::Await(_), Some(_)) => self.track.control(control),
            (
                Control::Acquire(lock) | Control::AcquireShared(lock) | Control::AcquireOneOf { lock, .. },
                Some(open),
            ) => {
                open.held.push(lock);
                self.track.control(control);
            }
            (Control::Release(lock), Some(open)) => {
                // Another lane's lock, taken before this one began, is none of this one's.
                if let Some(at) = open.held.iter().rposition(|one| *one == lock) {
                    open.held.remove(at);
                    self.track.control(control);
                }
            }
            // A lane may have a team of its own, or work at what is none of its own.
            (Control::Part(_), Some(_)) => self.inside += 1,
            (Control::PartEnd, _) => self.end_work(),
            (_, Some(_)) => {}
            (control, None) => self.between_lanes(control),
        }
    }

    /// A control that comes while the thread is in no lane.
    fn between_lanes(&mut self, control: Control) {
        let work = &mut self.work;
        match control {
            Control::Part(team) => self.begin_work(team),
            Control::Begin { .. } => (work.given, work.piece, work.order) = (None, None, 0),
            Control::Team { league, order } => {
                work.launch = Launch { team: Some(league), ..Launch::default() };
                (work.given, work.order) = (None, order);
                work.times.fill(0);
            }
            Control::Meet(episode) => {
                work.launch.behind = Some(episode);
                work.times.fill(0);
            }
            Control::Chunk { first, stride } => {
                work.given = Some(Given { first, stride, turns: 0, begun: 0 });
                self.plan.see(self.loops.last().map_or(0, |one| one.call), GIVEN);
            }
            Control::Turns(turns) => {
                if let Some(given) = &mut work.given {
                    given.turns = turns;
                }
            }
            Control::Piece { first, taskloop } => work.piece = Some(Piece { taskloop, first, level: None }),
            _ => {}
        }
    }

    /// The thread begins its part of a team's work, or what no other has a part in.
    fn begin_work(&mut self, team: Option<EpisodeId>) {
        let alone = team.is_none().then_some((self.thread, self.alone));
        self.alone += u32::from(alone.is_some());
        let launch = Launch { team, alone, ..Launch::default() };
        let work = Work { launch, times: vec![0; self.plan.calls.len() + 1], ..Work::default() };
        self.around.push(std::mem::replace(&mut self.work, work));
    }

    /// That ends.
    fn end_work(&mut self) {
        if self.inside > 0 {
            self.inside -= 1;
        } else if let Some(work) = self.around.pop() {
            self.end_lane();
            self.work = work;
        }
    }

    /// The thread runs a row of segments: in parts, which begin at marks.
    fn row(&mut self, row: RowId, sps: &mut &[i64], addresses: &mut &[u64]) -> Result<()> {
        let whole = self.splitter.whole(row);
        let lowest = i64::from(self.track.level()) + i64::from(whole.total.lowest);
        let base = self.open.as_ref().map_or(1, |open| i64::from(open.levels[0]));
        if lowest < base.max(1) {
            return self.splitter.segments(row).iter().try_for_each(|code| self.segment(code, sps, addresses));
        }
        self.come();
        for number in self.splitter.parts_at(row, &self.plan.heads) {
            let part = self.splitter.of(number);
            if let Some(first) = part.first().filter(|_| part.turns) {
                self.pass(first)?;
            }
            self.run(part, sps, addresses)?;
        }
        Ok(())
    }

    fn segment(&mut self, code: &Code, sps: &mut &[i64], addresses: &mut &[u64]) -> Result<()> {
        let Some(id) = code.as_segment() else { return Ok(()) };
        self.come();
        self.pass(id)?;
        let total = Total::of(&self.briefs[id.0 as usize]);
        let segments = std::slice::from_ref(code);
        self.run(Part { code: *code, segments, turns: false, is_more_than_test: false, total }, sps, addresses)
    }

    /// A segment comes.
    #[inline]
    fn come(&mut self) {
        let level = self.track.level();
        if let Some(piece) = &mut self.work.piece {
            // It has ended where the thread is further out than its body.
            match piece.level {
                Some(of_body) if level < of_body => self.work.piece = None,
                Some(_) => {}
                None => piece.level = Some(level),
            }
        }
        if self.open.as_ref().is_some_and(|open| level < open.levels[0]) {
            self.end_lane();
        }
    }

    /// The thread stands before a segment: there may be a mark, or a call that begins a loop.
    fn pass(&mut self, id: SegmentId) -> Result<()> {
        let (level, role) = (self.track.level(), self.plan.of[self.briefs[id.0 as usize].place.0 as usize]);
        if let Some(open) = &mut self.open {
            // What a function has begun that was left without its end.
            open.levels.truncate(open.levels.partition_point(|of_mark| *of_mark <= level));
            match role.mark {
                Some(Marker::IterationBegin) => open.levels.push(level),
                Some(Marker::IterationEnd) => {
                    open.levels.pop_if(|of_mark| *of_mark == level);
                }
                _ => {}
            }
            if open.levels.is_empty() {
                self.end_lane();
            }
        } else if role.mark == Some(Marker::IterationBegin) {
            self.begin_lane(level)?;
        }
        if role.begins_loop > 0 && self.open.is_none() {
            self.loops.truncate(self.loops.partition_point(|one| one.level < level));
            let time = &mut self.work.times[role.begins_loop as usize];
            *time += 1;
            self.loops.push(Loop { level, call: role.begins_loop, time: *time });
            (self.work.given, self.counts.entries) = (None, self.counts.entries + 1);
        }
        Ok(())
    }

    /// The thread runs these segments.
    fn run(&mut self, part: Part<'_>, sps: &mut &[i64], addresses: &mut &[u64]) -> Result<()> {
        self.track.run((part.code, part.segments.len()), &part.total, sps, addresses);
        self.counts.mathematics[usize::from(self.open.is_none())] += part.total.mathematics;
        match &mut self.open {
            Some(open) => {
                open.kept += part.total.instructions;
                self.track.is_sure()
            }
            None => {
                self.counts.outside += part.total.instructions;
                Ok(())
            }
        }
    }

    fn begin_lane(&mut self, level: u32) -> Result<()> {
        let stretch = self.track.begin(None)?;
        self.loops.truncate(self.loops.partition_point(|one| one.level <= level));
        let of_loop = self.loops.last().filter(|one| one.level == level).copied().unwrap_or_default();
        let (launch, chunk, first) = match (self.work.piece, &mut self.work.given) {
            (Some(Piece { taskloop, first, .. }), _) => {
                (Launch { taskloop: Some(taskloop), ..Launch::default() }, 0, Some(first))
            }
            (None, given) => {
                self.loops.iter().for_each(|one| self.plan.see(one.call, RAN));
                let launch = Launch { of_loop: of_loop.call, time: of_loop.time, ..self.work.launch };
                let (chunk, first) = given.as_mut().map_or((0, None), |given| {
                    let chunk = given.begun.checked_div(given.turns).unwrap_or(0);
                    given.begun += 1;
                    let before = i64::from(given.stride).wrapping_mul(chunk as i64);
                    (chunk as u32, Some(given.first.wrapping_add(before)))
                });
                (launch, chunk, first)
            }
        };
        if self.launches.last() != Some(&launch) {
            self.launches.push(launch);
        }
        let launch = self.launches.len() as u32 - 1;
        self.lanes.push(Begun { stretch, launch, team: self.work.order, chunk, first, part: 0 });
        self.open = Some(Open { held: Vec::new(), kept: 0, levels: vec![level] });
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
