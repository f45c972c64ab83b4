//! Turns that wait are taken out of the stream again: what is left of a wait does not depend on how long it was.
//!
//! The first turns are kept, watched, and cut off the batch when the thread is back at the loop's head. From then on
//! the thread is only compared with the turn that it makes over and over: whole turns change nothing but counts, and
//! the segments of the last one are run when it turns out otherwise. The last turn goes too, where all of it was run,
//! and the code before the loop could have led to where it was left: where compilers turn `while` into one test before
//! the loop and one at its end, a wait of no turn is one test, and so is any other.
//!
//! What it buys that blocks of turns made over and over are only counted: without it `replay -H minpc` takes 60 times
//! as long for eight threads that spin on a variable for their turn (2.4 s, 144 s); nothing for programs that do not
//! spin.

use std::collections::hash_map::Entry;

use heuristics::SegmentId;
use rustc_hash::FxHashMap;
use trace_format::{BlockId, Pc};

use super::super::super::blocks::Facts;
use super::super::super::locks::HeldLock;
use super::super::{Counts, Expected, ThreadState};
use crate::lanes::stream::BatchLengths;
use crate::waiting::leads_to;
use crate::{Batch, Code};

/// The stream's state before a segment with which a turn may begin.
#[derive(Clone, Debug)]
struct Mark {
    segment: SegmentId,
    sp: u64,
    held: Vec<HeldLock>,
    /// Where the branch before it can lead.
    ways: Option<[Pc; 2]>,
    /// Where its turn begins in the way.
    from: usize,
    lengths: BatchLengths,
    counts: Counts,
    expected: Expected,
}

/// A turn that is made over and over.
#[derive(Clone, Debug)]
struct Repeat {
    segments: Vec<SegmentId>,
    /// The stack pointer behind each, where it is recorded.
    sps: Vec<Option<u64>>,
    /// How many of them have come, of the turn that is being made.
    come: usize,
    /// What a turn adds to the counts.
    counts: Counts,
    /// The addresses of the segments that have come.
    addresses: Vec<u64>,
    /// By block, and how many have come before.
    blocks: FxHashMap<(BlockId, usize), Behind>,
}

/// A block of turns that are made over and over.
#[derive(Clone, Debug)]
struct Behind {
    /// How many segments of the turn have come behind it, and the turns that it ends.
    come: usize,
    turns: u64,
    /// The stack pointers that are recorded of it.
    sps: Vec<u64>,
}

impl Repeat {
    /// What this block with these recorded stack pointers is of the turn; none where it is something else.
    fn behind(&mut self, block: BlockId, sps: &[u64], codes: &[Code]) -> Option<&Behind> {
        let behind = match self.blocks.entry((block, self.come)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let mut behind = Behind { come: self.come, turns: 0, sps: Vec::new() };
                for code in codes {
                    if behind.come == self.segments.len() {
                        behind.come = 0;
                        behind.turns += 1;
                    }
                    let segment = self.segments[behind.come];
                    if code.as_segment() != Some(segment) {
                        return None;
                    }
                    behind.sps.extend(self.sps[behind.come]);
                    behind.come += 1;
                }
                unknown.insert(behind)
            }
        };
        (behind.sps == sps).then_some(behind)
    }
}

/// The turns that are watched, and the one that is made over and over.
#[derive(Clone, Debug, Default)]
pub(in crate::view::thread_state) struct Turns {
    way: Vec<SegmentId>,
    /// The stack pointer behind each segment of the way, where it is recorded.
    sps: Vec<Option<u64>>,
    marks: Vec<Mark>,
    repeat: Option<Box<Repeat>>,
}

impl Turns {
    /// Whether a turn is being watched.
    #[inline]
    pub fn is_watching(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Whether a turn is made over and over.
    pub fn is_repeating(&self) -> bool {
        self.repeat.is_some()
    }

    /// Stops watching: the lane did something that is not waiting.
    pub fn forget(&mut self) {
        self.marks.clear();
        self.way.clear();
        self.sps.clear();
    }
}

impl ThreadState<'_> {
    /// Before a segment, and the stack pointer behind it if it is recorded: takes the turn before out again, or watches
    /// for the next.
    pub(in crate::view::thread_state) fn watch_for_turns(
        &mut self,
        (segment, recorded): (SegmentId, Option<u64>),
        batch: &mut Batch,
    ) {
        if self.stack.in_leaf() {
            return;
        }
        self.perhaps_left(segment, batch);
        let plan = self.plan;
        let waiting = &plan.waiting;
        if waiting.is_lone(segment) && self.reason(segment).is_none() {
            self.has_waited();
        }
        self.unordered.asks += u64::from(waiting.asks(segment) && self.reason(segment).is_none());
        if !waiting.is_member(segment) || plan.blocks.is_entry(segment) || plan.blocks.is_exit(segment) {
            self.turns.forget();
            return;
        }
        if waiting.is_head(segment) {
            self.come_to_head(segment, batch);
            if self.turns.repeat.is_some() {
                return;
            }
        }
        let Turns { way, sps, marks, .. } = &mut self.turns;
        marks.retain(|mark| way.len() - mark.from < waiting.longest());
        if marks.is_empty() {
            way.clear();
            sps.clear();
        } else {
            way.push(segment);
            sps.push(recorded);
        }
    }

    /// Whether the lane could run this segment, as things are, and it is kept.
    fn is_kept(&mut self, segment: SegmentId, batch: &mut Batch) -> bool {
        self.settle_after_jump(batch);
        if self.reason(segment).is_some() {
            return false;
        }
        if self.extents.is_fresh() {
            self.begin_stream(segment, batch);
        }
        self.resolve(true, batch);
        true
    }

    fn come_to_head(&mut self, segment: SegmentId, batch: &mut Batch) {
        if !self.is_kept(segment, batch) {
            return;
        }
        let plan = self.plan;
        let Turns { way, marks, .. } = &self.turns;
        let same = |m: &Mark| m.segment == segment && m.sp == self.sp && m.held == self.held.locks();
        let is_turn = |m: &Mark| same(m) && plan.waiting.contains(&way[m.from..], &plan.table);
        if let Some(at) = marks.iter().rposition(is_turn) {
            let (segments, sps, counts) = self.take_out(at, batch);
            let (addresses, blocks) = (Vec::new(), FxHashMap::default());
            self.turns.repeat = Some(Box::new(Repeat { segments, sps, come: 0, counts, addresses, blocks }));
            return;
        }
        // The same way may yet be a part of a longer turn; the next begins here, too.
        let before = plan.blocks.rows.last_segment(batch).or(self.previous);
        let mark = Mark {
            segment,
            sp: self.sp,
            held: self.held.locks().to_vec(),
            ways: before.and_then(|before| plan.table[before].ways),
            from: way.len(),
            lengths: batch.lengths(),
            counts: self.counts,
            expected: self.expected,
        };
        self.turns.marks.push(mark);
    }

    /// Before a segment: takes out what was run since a mark where that is a whole turn, and the code before the loop
    /// could have led here.
    fn perhaps_left(&mut self, segment: SegmentId, batch: &mut Batch) {
        let plan = self.plan;
        let to = Some(plan.table[segment].start());
        let Turns { way, marks, .. } = &self.turns;
        // In a turn of another form, which begins as this one does, it goes on.
        let is_left = |m: &Mark| {
            let turn = &way[m.from..];
            m.segment != segment
                && leads_to(m.ways, to)
                && plan.waiting.contains(turn, &plan.table)
                && !plan.waiting.go_on(turn, segment)
        };
        let Some(at) = marks.iter().rposition(is_left) else { return };
        if !self.is_kept(segment, batch) {
            return;
        }
        // The call of a function is no part of what is taken out, nor is a lock.
        let mark = &self.turns.marks[at];
        if mark.sp == self.sp && mark.held == self.held.locks() {
            self.take_out(at, batch);
            self.turns.marks.truncate(at);
        }
    }

    /// The turn since this mark was waiting. Returns what it is, the stack pointers that are recorded behind its
    /// segments, and what it adds to the counts.
    fn take_out(&mut self, at: usize, batch: &mut Batch) -> (Vec<SegmentId>, Vec<Option<u64>>, Counts) {
        self.turns.marks.truncate(at + 1);
        let mark = &self.turns.marks[at];
        let (segments, sps) = (self.turns.way.split_off(mark.from), self.turns.sps.split_off(mark.from));
        batch.truncate(&mark.lengths);
        self.perhaps_forget_tries(batch);
        let Mark { counts, expected, .. } = self.turns.marks[at];
        let counts = self.count_as_waiting(counts, expected);
        self.turns.marks[at].counts = self.counts;
        self.spin.forget();
        if !self.plan.waiting.is_retry(&segments) {
            self.has_waited();
        }
        (segments, sps, counts)
    }

    /// Whether the block is a part of turns that are made over and over, and needs nothing done.
    pub(in crate::view::thread_state) fn repeats(
        &mut self,
        block: BlockId,
        facts: Facts,
        sps: &[u64],
        memory: &[u64],
    ) -> bool {
        let Some(repeat) = &mut self.turns.repeat else { return false };
        let (codes, table) = (self.plan.blocks.codes(facts), &self.plan.table);
        let Some(Behind { come, turns, .. }) = repeat.behind(block, sps, codes) else { return false };
        let (come, turns) = (*come, *turns);
        let mut counts = repeat.counts;
        counts.multiply(turns);
        self.counts.add(&counts);
        if let Some(mark) = self.turns.marks.last_mut() {
            mark.counts.add(&counts);
        }
        repeat.come = come;
        if !memory.is_empty() {
            repeat.addresses.extend_from_slice(memory);
            let own: u32 = repeat.segments[..come].iter().map(|id| table[*id].addresses).sum();
            repeat.addresses.drain(..repeat.addresses.len() - own as usize);
        }
        true
    }

    /// Whether the segment is the next one of a turn that is made over and over, and needs nothing done. If it is not,
    /// the segments of the last turn are run.
    pub(in crate::view::thread_state) fn repeats_segment(
        &mut self,
        (segment, recorded): (SegmentId, Option<u64>),
        addresses: &[u64],
        batch: &mut Batch,
    ) -> bool {
        let Some(repeat) = &mut self.turns.repeat else { return false };
        let next = repeat.come % repeat.segments.len();
        if repeat.segments[next] != segment || recorded != repeat.sps[next] {
            self.end_repeat(Some(segment), batch);
            return false;
        }
        if repeat.come == repeat.segments.len() {
            self.counts.add(&repeat.counts);
            if let Some(mark) = self.turns.marks.last_mut() {
                mark.counts.add(&repeat.counts);
            }
            repeat.come = 0;
            repeat.addresses.clear();
        }
        repeat.come += 1;
        repeat.addresses.extend_from_slice(addresses);
        true
    }

    /// Runs the segments of the last turn, which was not made to its end, or was the last; before this segment, where
    /// one follows at once.
    pub(in crate::view::thread_state) fn end_repeat(&mut self, next: Option<SegmentId>, batch: &mut Batch) {
        let Some(repeat) = self.turns.repeat.take() else { return };
        let plan = self.plan;
        let ways = self.turns.marks.last().and_then(|mark| mark.ways);
        let is_whole = repeat.come == repeat.segments.len();
        let is_left = is_whole && leads_to(ways, next.map(|next| plan.table[next].start()));
        if is_left && !next.is_some_and(|next| plan.waiting.go_on(&repeat.segments, next)) {
            self.counts.add(&repeat.counts);
            self.turns.forget();
            self.update();
            return;
        }
        let mut addresses = &repeat.addresses[..];
        for (id, recorded) in repeat.segments[..repeat.come].iter().zip(&repeat.sps) {
            let segment = &plan.table[*id];
            let (own, rest) = addresses.split_at(segment.addresses as usize);
            addresses = rest;
            self.turns.way.push(*id);
            self.turns.sps.push(*recorded);
            let after = self.sp_behind(segment.sp, *recorded);
            self.segment(*id, after, own, batch);
        }
        self.update();
    }
}
