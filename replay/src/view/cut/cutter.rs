//! Cuts the stream of a thread into lanes: where one begins, its stack pointer counts as 0 and its call level as 1, as
//! those of a thread do.

use super::loops::LoopPlan;
use super::rows::{AllRows, Part, Splitter, Total};
use super::store::{Store, Writer};
use heuristics::SegmentId;
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
}

/// Which lanes were launched together: they share warps with each other only. Lanes of smaller ones run first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Launch {
    /// That of the threads.
    pub generation: u32,
    /// The team's; none where threads were not started as one.
    team: Option<EpisodeId>,
    /// The barrier that its threads had reached last.
    behind: Option<EpisodeId>,
    /// How often each of them had reached the loop since then.
    time: u32,
    of_loop: u32,
}

/// What a thread was cut into.
pub(super) struct Pieces {
    pub store: Store,
    /// By lane.
    pub launches: Vec<Begun>,
    /// Addresses that turns accessed, the first few of each.
    pub accesses: Vec<Access>,
    pub counts: Counts,
}

/// How a lane began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    /// With which others it was launched.
    pub launch: Launch,
    /// What orders its part among those of all teams of a construct.
    pub team: u32,
    /// In which chunk its thread ran it.
    pub chunk: u32,
    /// What orders that chunk where the trace says which iterations it has; of calls, the thread's last event before
    /// the lane; of a task, its number.
    pub first: Option<i64>,
}

/// An access of a lane in its loop's own frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The number of the thread's lane.
    pub lane: u32,
    /// Which access of which segment.
    pub by: (SegmentId, u32),
    pub address: u64,
}

/// Instructions and times, by what became of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub kept: u64,
    pub outside: u64,
    /// Of the last turns of loops that end with the test at the beginning.
    pub last_tests: u64,
    /// Times that a thread reached a loop.
    pub entries: u64,
    /// Times that a lane reached a barrier, which is left out.
    pub barriers: u64,
    /// Whether threads reached a loop several times in one launch.
    pub dealt: bool,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.kept += other.kept;
        self.outside += other.outside;
        self.last_tests += other.last_tests;
        self.entries += other.entries;
        self.barriers += other.barriers;
        self.dealt |= other.dealt;
    }
}

/// The lane that is being written.
struct Open {
    /// The thread's stack pointer and level where the lane began; none before its first segment.
    zero: Option<(i64, u32)>,
    /// What the replay makes of the lane's stream.
    expected: (i64, u32),
    held: Vec<LockId>,
    kept: u64,
    /// How many of its accesses are remembered.
    accesses: usize,
}

/// The loop that the thread is in.
#[derive(Clone, Copy)]
struct Turning {
    of_loop: u32,
    level: u32,
    /// Whether this turn reached a branch, or could have ended before it reaches one.
    is_more_than_test: bool,
}

/// Cuts the stream of one thread.
pub(super) struct Cutter<'a, 'k> {
    rule: Rule<'a>,
    /// So many accesses of a turn are remembered.
    most_accesses: usize,
    briefs: &'a [Brief],
    splitter: Splitter<'a>,
    writer: Writer<'k>,
    launches: Vec<Begun>,
    accesses: Vec<Access>,
    counts: Counts,
    sp: i64,
    level: u32,
    stack: Option<(u64, u32)>,
    /// The episode that came last since a segment ran: where an extent begins then, that of its team.
    met: Option<EpisodeId>,
    /// Of lanes that begin now, except for the loop.
    launch: Launch,
    /// By loop: how often the thread reached it since the extent began, or since the last barrier.
    times: Vec<u32>,
    /// The loop whose chunks the thread is handed, and the level there.
    dispatch: Option<(u32, u32)>,
    /// How many chunks it ran before this one.
    chunk: u32,
    /// The iterations that it was given last, if it has not reached them: see [`Control::Chunk`].
    given: Option<(i64, u32)>,
    /// The same of the chunk that it runs; of calls, the thread's last event before this one.
    runs: Option<(i64, u32)>,
    /// What orders its part among those of all teams of a construct.
    order: u32,
    open: Option<Open>,
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
            writer: Writer::new(keeper),
            launches: Vec::new(),
            accesses: Vec::new(),
            counts: Counts::default(),
            sp: 0,
            level: 1,
            stack: None,
            met: None,
            launch: Launch { generation, ..Launch::default() },
            times: vec![0; loops],
            dispatch: None,
            chunk: 0,
            given: None,
            runs: None,
            order: 0,
            open: None,
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
        self.leave_loop();
        self.end_lane();
        let Cutter { writer, launches, accesses, counts, .. } = self;
        Ok(Pieces { store: writer.finish()?, launches, accesses, counts })
    }

    fn control(&mut self, control: Control) -> Result<()> {
        match control {
            Control::Sp(sp) => self.sp = sp,
            Control::Level(level) => self.level = level,
            Control::Stack { zero, above } => self.stack = Some((zero, above)),
            Control::Begin { after } => self.extent(after)?,
            Control::Chunk { first, stride } => self.given = Some((first, stride)),
            Control::Team { league, order } => {
                self.leave_loop();
                (self.launch.team, self.launch.behind) = (Some(league), None);
                self.times.fill(0);
                (self.dispatch, self.given, self.runs) = (None, None, None);
                self.order = order;
            }
            Control::Meet(episode) => {
                self.met = Some(episode);
                self.launch.behind = Some(episode);
                self.times.fill(0);
                self.counts.barriers += u64::from(self.open.is_some());
            }
            Control::MeetAll => self.counts.barriers += u64::from(self.open.is_some()),
            Control::Acquire(lock) | Control::AcquireShared(lock) => {
                if let Some(open) = &mut self.open {
                    open.held.push(lock);
                    self.writer.control(control);
                }
            }
            Control::Release(lock) => {
                // Another lane's lock, taken before this one began, is none of this one's.
                let held = self.open.as_mut().map(|open| &mut open.held);
                if let Some(held) = held
                    && let Some(at) = held.iter().rposition(|one| *one == lock)
                {
                    held.remove(at);
                    self.writer.control(control);
                }
            }
        }
        Ok(())
    }

    /// An extent of the region begins.
    fn extent(&mut self, after: Seq) -> Result<()> {
        self.leave_loop();
        self.end_lane();
        (self.launch.team, self.launch.behind) = (self.met.take(), None);
        self.times.fill(0);
        self.dispatch = None;
        (self.given, self.runs, self.order) = (None, None, 0);
        if matches!(self.rule, Rule::Extents) {
            self.runs = Some((after.0 as i64, 0));
            self.begin_lane(Launch { generation: self.launch.generation, ..Launch::default() })?;
        }
        Ok(())
    }

    /// The thread runs a row of segments: in parts, as they are of one lane or another.
    fn row(&mut self, row: RowId, sps: &mut &[i64], addresses: &mut &[u64]) -> Result<()> {
        let whole = self.splitter.whole(row);
        let lowest = i64::from(self.level) + i64::from(whole.total.lowest);
        if lowest < 1 {
            return self.splitter.segments(row).iter().try_for_each(|code| self.segment(code, sps, addresses));
        }
        self.met = None;
        let Rule::Turns(plan) = self.rule else { return self.part(whole, sps, addresses) };
        let turning = self.turning.map(|turning| (turning.of_loop, i64::from(turning.level)));
        if turning.is_some_and(|(_, level)| lowest > level) {
            return self.part(whole, sps, addresses);
        }
        let standing = turning.map(|(of_loop, level)| (of_loop, (i64::from(self.level) - level) as i32));
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

    /// The thread, which is in no loop, runs these segments: perhaps it has got all of a loop's chunks.
    fn leave_dispatch(&mut self, plan: &LoopPlan, segments: &[Code]) {
        let Some((of_loop, of_chunks)) = self.dispatch else { return };
        let mut level = self.level;
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
        let base = self.open.as_ref().and_then(|open| open.zero).map_or(self.level, |(_, base)| base);
        if i64::from(self.level) + i64::from(part.total.lowest) >= i64::from(base) {
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
        self.met = None;
        if let Rule::Turns(plan) = self.rule {
            self.turn(plan, brief)?;
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
        let (recorded, accessed);
        (recorded, *sps) = sps.split_at((total.recorded as usize).min(sps.len()));
        (accessed, *addresses) = addresses.split_at(total.addresses as usize);
        if let Some(open) = &mut self.open {
            let (zero, base) = match open.zero {
                Some(zero) => zero,
                None => {
                    if let Some((zero, above)) = self.stack {
                        let more = u32::try_from(-self.sp).unwrap_or(0);
                        let (zero, above) = (zero.wrapping_add_signed(self.sp), above.saturating_add(more));
                        self.writer.control(Control::Stack { zero, above });
                    }
                    *open.zero.insert((self.sp, self.level))
                }
            };
            let here = (self.sp - zero, (self.level + 1).saturating_sub(base).max(1));
            if here.0 != open.expected.0 {
                self.writer.control(Control::Sp(here.0));
            }
            if here.1 != open.expected.1 {
                self.writer.control(Control::Level(here.1));
            }
            self.writer.ran(code, segments.len(), recorded.iter().map(|sp| sp - zero), accessed);
            if self.turning.is_none_or(|turning| turning.is_more_than_test) {
                self.writer.is_sure()?;
            }
            open.kept += total.instructions;
            let sp = recorded.last().map_or(here.0, |sp| sp - zero) + total.sp;
            open.expected = (sp, after(here.1, total.level));
            self.remember(segments, accessed);
        } else {
            self.counts.outside += total.instructions;
        }
        self.sp = recorded.last().copied().unwrap_or(self.sp) + total.sp;
        self.level = after(self.level, total.level);
        Ok(())
    }

    /// Remembers what a turn accesses in its loop's own frame, the first few times.
    fn remember(&mut self, segments: &[Code], mut addresses: &[u64]) {
        let (Some(turning), Some(open)) = (self.turning, &mut self.open) else { return };
        let (lane, mut level) = (self.launches.len() as u32 - 1, self.level);
        for id in segments.iter().filter_map(|code| code.as_segment()) {
            let left = self.most_accesses - open.accesses;
            if left == 0 {
                return;
            }
            let brief = &self.briefs[id.0 as usize];
            let (own, rest) = addresses.split_at(brief.addresses as usize);
            addresses = rest;
            if turning.level == level {
                let access =
                    |(index, address): (usize, &u64)| Access { lane, by: (id, index as u32), address: *address };
                self.accesses.extend(own.iter().enumerate().take(left).map(access));
                open.accesses += own.len().min(left);
            }
            level = after(level, brief.level.into());
        }
    }

    /// Before a segment: whether a turn of a loop ends or begins with it.
    fn turn(&mut self, plan: &LoopPlan, brief: &Brief) -> Result<()> {
        let place = &plan.of[brief.place.0 as usize];
        if let Some(turning) = self.turning {
            if self.level > turning.level {
                return Ok(());
            }
            if self.level < turning.level || !place.in_loops.contains(&turning.of_loop) {
                self.leave_loop();
            }
        }
        if let Some((of_loop, level)) = self.dispatch
            && (self.level < level || self.level == level && !place.in_dispatch.contains(&of_loop))
        {
            self.dispatch = None;
        }
        match (&mut self.turning, place.heads) {
            (Some(turning), heads) if heads == Some(turning.of_loop) => {
                let of_loop = turning.of_loop;
                turning.is_more_than_test = plan.loops[of_loop as usize];
                self.end_lane();
                self.begin_lane(self.of_loop(of_loop))?;
            }
            (Some(turning), _) => turning.is_more_than_test |= !place.in_tests.contains(&turning.of_loop),
            (None, Some(of_loop)) => {
                let level = self.level;
                if self.dispatch != Some((of_loop, level)) {
                    self.times[of_loop as usize] += 1;
                    self.counts.entries += 1;
                    self.chunk = 0;
                    self.dispatch = place.in_dispatch.contains(&of_loop).then_some((of_loop, level));
                    self.runs = self.given.take();
                } else {
                    self.chunk += 1;
                    let next = self.runs.filter(|(_, stride)| *stride != 0);
                    let next = next.map(|(first, stride)| (first.wrapping_add(stride.into()), stride));
                    self.runs = self.given.take().or(next);
                }
                let is_more_than_test = plan.loops[of_loop as usize];
                self.turning = Some(Turning { of_loop, level, is_more_than_test });
                self.begin_lane(self.of_loop(of_loop))?;
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// The launch of the loop's turns now.
    fn of_loop(&self, of_loop: u32) -> Launch {
        Launch { time: self.times[of_loop as usize], of_loop, ..self.launch }
    }

    /// The thread is in no loop any more. A turn that left by the first branch it reached did nothing but find that
    /// there are no more.
    fn leave_loop(&mut self) {
        let Some(turning) = self.turning.take() else { return };
        if turning.is_more_than_test {
            self.end_lane();
        } else if let Some(open) = self.open.take() {
            self.counts.last_tests += open.kept;
            self.launches.pop();
            self.accesses.truncate(self.accesses.len() - open.accesses);
            self.writer.take_back();
        }
    }

    fn begin_lane(&mut self, launch: Launch) -> Result<()> {
        self.writer.begin()?;
        let first = self.runs.map(|(first, _)| first);
        self.launches.push(Begun { launch, team: self.order, chunk: self.chunk, first });
        self.open = Some(Open { zero: None, expected: (0, 1), held: Vec::new(), kept: 0, accesses: 0 });
        Ok(())
    }

    /// The lane ends. Locks that it still holds are free for others.
    fn end_lane(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.counts.kept += open.kept;
        open.held.iter().rev().for_each(|lock| self.writer.control(Control::Release(*lock)));
    }
}

/// The call level after what adds so much to it.
pub(super) fn after(level: u32, more: i32) -> u32 {
    level.saturating_add_signed(more).max(1)
}
