//! A lane's place in its stream, and how it moves.

use heuristics::{Future, Lane, LaneSet, LaneState, SegmentId};

use super::Brief;
use super::sync::{Arrival, Sync};
use crate::{Batch, Code, Control, Entry, LaneStream, Result};

/// A lane's place in its stream: before a segment, before a control, or at its end.
pub(crate) struct Cursor<'a> {
    stream: Box<dyn LaneStream + 'a>,
    batch: Batch,
    at: usize,
    sps: usize,
    addresses: usize,
    /// Segments that the lane has run.
    passed: u64,
    /// Whether the batch is the stream's last; known only of a stream that was read ahead.
    ended: bool,
    ahead: ReadAhead,
    /// See [`Control::Stack`].
    stack: Option<(u64, u32)>,
}

/// How far a batch is known to reach: so many instructions from one of its codes to another.
#[derive(Clone, Copy, Default)]
struct ReadAhead {
    from: usize,
    to: usize,
    instructions: u64,
}

/// What the lanes of a warp will run, as far as their batches hold it.
pub(crate) struct Known<'a>(pub(crate) &'a [Cursor<'a>]);

impl Future for Known<'_> {
    fn look(&self, lane: Lane, skipped: usize, see: &mut dyn FnMut(SegmentId) -> bool) {
        let cursor = &self.0[lane.index()];
        let _ = cursor.batch.codes[cursor.at..].iter().filter_map(|c| c.as_segment()).skip(skipped).all(see);
    }

    fn passed(&self, lane: Lane) -> u64 {
        self.0[lane.index()].passed
    }
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(stream: Box<dyn LaneStream + 'a>) -> Cursor<'a> {
        Cursor {
            stream,
            batch: Batch::default(),
            at: 0,
            sps: 0,
            addresses: 0,
            passed: 0,
            ended: false,
            ahead: ReadAhead::default(),
            stack: None,
        }
    }

    /// Reads on until the batch holds all segments that begin less than so many instructions ahead, or the stream ends.
    #[inline]
    pub(crate) fn read_ahead(&mut self, instructions: u32, briefs: &[Brief]) -> Result<()> {
        let is_read = self.ahead.from == self.at && self.ahead.instructions >= u64::from(instructions);
        if is_read { Ok(()) } else { self.read_further(instructions, briefs) }
    }

    fn read_further(&mut self, instructions: u32, briefs: &[Brief]) -> Result<()> {
        let length = |code: &Code| code.as_segment().map_or(0, |id| u64::from(briefs[id.0 as usize].instructions));
        if self.ahead.to < self.at {
            self.ahead = ReadAhead { from: self.at, to: self.at, instructions: 0 };
        }
        let ran: u64 = self.batch.codes[self.ahead.from..self.at].iter().map(length).sum();
        self.ahead.from = self.at;
        self.ahead.instructions -= ran;
        loop {
            while self.ahead.instructions < u64::from(instructions) && self.ahead.to < self.batch.codes.len() {
                self.ahead.instructions += length(&self.batch.codes[self.ahead.to]);
                self.ahead.to += 1;
            }
            if self.ended || self.ahead.instructions >= u64::from(instructions) {
                return Ok(());
            }
            let mut next = Batch::default();
            if self.stream.next_batch(&mut next)? {
                self.batch.drop_front(self.at, self.sps, self.addresses);
                self.ahead = ReadAhead::default();
                (self.at, self.sps, self.addresses) = (0, 0, 0);
                self.batch.append(next);
            } else {
                self.ended = true;
            }
        }
    }

    /// The segment that the lane stands before; none before a control and at the end of the batch.
    #[inline]
    pub(crate) fn segment_here(&self) -> Option<SegmentId> {
        self.batch.codes.get(self.at)?.as_segment()
    }

    /// The codes from here to the end of the batch.
    #[inline]
    pub(crate) fn codes_left(&self) -> &[Code] {
        &self.batch.codes[self.at..]
    }

    /// The next so many codes, which there must be.
    #[inline]
    pub(crate) fn codes_ahead(&self, count: usize) -> &[Code] {
        &self.batch.codes[self.at..self.at + count]
    }

    /// The segment that the lane runs next, controls before it skipped; none at the end of the stream.
    pub(crate) fn next_segment(&self) -> Option<SegmentId> {
        self.batch.codes[self.at..].iter().find_map(|c| c.as_segment())
    }

    /// The next segments; there must be so many in a row.
    pub(crate) fn next_segments(&self, count: usize) -> Vec<SegmentId> {
        self.batch.codes[self.at..self.at + count].iter().filter_map(|c| c.as_segment()).collect()
    }

    /// The addresses of the current segment and what follows.
    pub(crate) fn addresses(&self) -> &[u64] {
        &self.batch.addresses[self.addresses..]
    }

    /// The stack pointers that will be recorded from the current segment on.
    pub(crate) fn recorded(&self) -> &[i64] {
        &self.batch.sps[self.sps..]
    }

    /// Where the lane's stack pointer counts as 0, and how many bytes of its stack lie there and above; none where it
    /// is not known.
    pub(crate) fn stack(&self) -> Option<(u64, u32)> {
        self.stack
    }

    /// The lane has run its current segment.
    #[inline]
    pub(crate) fn pass_segment(&mut self, brief: &Brief, state: &mut LaneState) {
        self.at += 1;
        self.passed += 1;
        if brief.recorded {
            state.sp = self.batch.sps[self.sps];
            self.sps += 1;
        } else {
            state.sp += i64::from(brief.sp);
        }
        state.level = state.level.saturating_add_signed(i32::from(brief.level)).max(1);
        self.addresses += brief.addresses as usize;
    }

    /// How the lane's state changes by a segment of a run before which so many stack pointers were recorded in the run.
    pub(crate) fn goes_through(&self, brief: &Brief, recorded: usize, state: &mut LaneState) {
        state.sp = if brief.recorded { self.batch.sps[self.sps + recorded] } else { state.sp + i64::from(brief.sp) };
        state.level = state.level.saturating_add_signed(i32::from(brief.level)).max(1);
        state.starts_block = brief.transfers;
    }

    /// The lane has run the segments of a run.
    pub(crate) fn pass_run(&mut self, total: &RunTotal, state: &mut LaneState) {
        self.at += total.segments;
        self.passed += total.segments as u64;
        self.sps += total.recorded;
        if total.recorded > 0 {
            state.sp = self.batch.sps[self.sps - 1];
        }
        state.sp += total.sp;
        let level = i64::from(state.level) + total.level;
        state.level = level.max(1 + total.level - total.lowest_level) as u32;
        self.addresses += total.addresses;
    }

    /// Goes through controls up to the next segment, a wait, or the end.
    pub(crate) fn arrive(&mut self, lane: Lane, state: &mut LaneState, sync: &mut Sync) -> Result<Arrival> {
        loop {
            let Some(code) = self.batch.codes.get(self.at) else {
                (self.at, self.sps, self.addresses) = (0, 0, 0);
                self.ahead = ReadAhead::default();
                if self.ended || !self.stream.next_batch(&mut self.batch)? {
                    self.batch.clear();
                    return Ok(Arrival::Finished);
                }
                continue;
            };
            let Entry::Control(index) = code.entry() else { return Ok(Arrival::Ready) };
            self.at += 1;
            match self.batch.controls[index] {
                Control::Sp(sp) => state.sp = sp,
                Control::Level(level) => state.level = level,
                Control::Stack { zero, above } => self.stack = Some((zero, above)),
                control => {
                    if !sync.passes(lane, control) {
                        return Ok(Arrival::Waits);
                    }
                }
            }
        }
    }
}

/// How many segments, without a control between, all these lanes have next in common within their batches.
pub(crate) fn common_run(cursors: &[Cursor], lanes: LaneSet) -> usize {
    let mut streams = lanes.iter().map(|l| &cursors[l.index()]).map(|c| &c.batch.codes[c.at..]);
    let Some(first) = streams.next() else { return 0 };
    let common = streams.fold(first, |common, codes| &common[..common_prefix(common, codes)]);
    common.iter().position(|c| c.as_segment().is_none()).unwrap_or(common.len())
}

/// The same, where it is known that they have so many in common: at most so many more are looked at.
pub(crate) fn common_further(cursors: &[Cursor], lanes: LaneSet, known: usize, most: usize) -> usize {
    let mut streams = lanes.iter().map(|l| &cursors[l.index()]).map(|c| &c.batch.codes[c.at..]);
    let Some(first) = streams.next() else { return 0 };
    let first = &first[known..first.len().min(known + most)];
    let common =
        streams.fold(first, |common, codes| &common[..common_prefix(common, &codes[known.min(codes.len())..])]);
    known + common.iter().position(|c| c.as_segment().is_none()).unwrap_or(common.len())
}

/// How many codes the two begin with in common.
fn common_prefix(a: &[Code], b: &[Code]) -> usize {
    /// Compared at once, without a branch; a mismatch is then looked for in one such piece only.
    const PIECE: usize = 16;
    let differs = |(a, b): (&[Code; PIECE], &[Code; PIECE])| {
        std::iter::zip(a, b).fold(0, |bits, (a, b)| bits | (a.bits() ^ b.bits())) != 0
    };
    let mut pieces = std::iter::zip(a.as_chunks().0, b.as_chunks().0);
    let whole = a.len().min(b.len()) / PIECE;
    let equal = PIECE * pieces.position(differs).unwrap_or(whole);
    equal + std::iter::zip(&a[equal..], &b[equal..]).take_while(|(a, b)| a == b).count()
}

/// What a run of segments does to each lane that runs it.
#[derive(Default)]
pub(crate) struct RunTotal {
    pub(crate) segments: usize,
    pub(crate) instructions: u64,
    pub(crate) gpu_tenths: u64,
    addresses: usize,
    recorded: usize,
    /// The stack-pointer change since the last recorded one, or since the run began.
    sp: i64,
    level: i64,
    /// The lowest that the level sank to, relative to where it began: at most 0.
    lowest_level: i64,
    last_level: i64,
}

impl RunTotal {
    pub(crate) fn of(run: &[SegmentId], briefs: &[Brief]) -> RunTotal {
        let mut total = RunTotal::default();
        run.iter().for_each(|id| total.add(&briefs[id.0 as usize]));
        total
    }

    /// One more segment.
    #[inline]
    pub(crate) fn add(&mut self, brief: &Brief) {
        self.segments += 1;
        self.instructions += u64::from(brief.instructions);
        self.gpu_tenths += u64::from(brief.gpu.tenths);
        self.addresses += brief.addresses as usize;
        if brief.recorded {
            (self.recorded, self.sp) = (self.recorded + 1, 0);
        }
        self.sp += i64::from(brief.sp);
        self.last_level = i64::from(brief.level);
        if brief.level != 0 {
            self.level += self.last_level;
            self.lowest_level = self.lowest_level.min(self.level);
        }
    }

    /// The level at which the last segment ran, given the level after it.
    pub(crate) fn level_before_last(&self, after: u32) -> u32 {
        (i64::from(after) - self.last_level).max(1) as u32
    }
}
