//! Turns that wait are taken out of the stream again: of a wait however long one turn stays, the one in which it was
//! over.
//!
//! The first turns are kept, watched, and cut off the batch when the thread is back at the loop's head. From then on
//! the thread is only compared with the turn that it makes over and over: whole turns change nothing but counts, and
//! the blocks of the last one are run when it turns out otherwise.

use trace_format::BlockId;

use super::super::blocks::{Facts, Flags};
use super::super::locks::HeldLock;
use super::{Counts, LaneState};
use crate::Batch;
use crate::stream::BatchLengths;

/// The stream's state before a block with which a turn may begin.
#[derive(Clone, Debug)]
struct Mark {
    block: BlockId,
    sp: u64,
    held: Vec<HeldLock>,
    /// Where its turn begins in the way.
    from: usize,
    lengths: BatchLengths,
    counts: Counts,
    expected_sp: u64,
    expected_level: u32,
}

/// A turn that is made over and over.
#[derive(Clone, Debug)]
struct Repeat {
    blocks: Vec<BlockId>,
    /// How many blocks of it have come.
    come: usize,
    /// What a turn adds to the counts.
    counts: Counts,
    /// The addresses of the blocks that have come.
    addresses: Vec<u64>,
    /// How many of them are each block's.
    shares: Vec<usize>,
}

/// The turns that are watched, and the one that is made over and over.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    way: Vec<BlockId>,
    marks: Vec<Mark>,
    repeat: Option<Box<Repeat>>,
}

impl Turns {
    /// Whether a turn is being watched.
    #[inline]
    pub fn is_watching(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Stops watching: the lane did something that is not waiting.
    pub fn forget(&mut self) {
        self.marks.clear();
        self.way.clear();
    }
}

impl LaneState<'_> {
    /// Before a block: takes the turn before out again, or watches for the next.
    pub(super) fn watch_for_turns(&mut self, block: BlockId, facts: Facts, batch: &mut Batch) {
        if !facts.flags.has(Flags::WAITS) {
            self.turns.forget();
            return;
        }
        let waiting = &self.plan.waiting;
        if waiting.is_head(block) {
            self.come_to_head(block, facts, batch);
        }
        let Turns { way, marks, .. } = &mut self.turns;
        marks.retain(|mark| way.len() - mark.from < waiting.longest());
        if marks.is_empty() {
            way.clear();
        } else {
            way.push(block);
        }
    }

    fn come_to_head(&mut self, block: BlockId, facts: Facts, batch: &mut Batch) {
        self.settle_after_jump(batch);
        let first = self.plan.blocks.codes(facts)[0].as_segment();
        let Some(first) = first.filter(|id| self.reason(*id).is_none()) else { return };
        if self.fresh {
            self.begin_stream(first, batch);
        }
        self.resolve(true, batch);
        let same = |m: &Mark| m.block == block && m.sp == self.sp && m.held == self.held.locks();
        let at = self.turns.marks.iter().rposition(same);
        if let Some(at) = at {
            let mark = &self.turns.marks[at];
            let turn = &self.turns.way[mark.from..];
            if turn.is_empty() {
                return;
            }
            if self.plan.waiting.contains(turn) {
                self.take_out(at, batch);
                return;
            }
            // The same way may yet be a part of a longer turn; the next begins here, too.
        }
        let mark = Mark {
            block,
            sp: self.sp,
            held: self.held.locks().to_vec(),
            from: self.turns.way.len(),
            lengths: batch.lengths(),
            counts: self.counts,
            expected_sp: self.expected_sp,
            expected_level: self.expected_level,
        };
        self.turns.marks.push(mark);
    }

    /// The turn since this mark was waiting.
    fn take_out(&mut self, at: usize, batch: &mut Batch) {
        self.turns.marks.truncate(at + 1);
        let mark = &self.turns.marks[at];
        let blocks = self.turns.way.split_off(mark.from);
        batch.truncate(&mark.lengths);
        let mut counts = self.counts.since(&mark.counts);
        counts.spin += std::mem::take(&mut counts.kept);
        self.counts = mark.counts;
        self.counts.add(&counts);
        self.expected_sp = mark.expected_sp;
        self.expected_level = mark.expected_level;
        self.turns.marks[at].counts = self.counts;
        self.spin.forget();
        let repeat = Repeat { blocks, come: 0, counts, addresses: Vec::new(), shares: Vec::new() };
        self.turns.repeat = Some(Box::new(repeat));
    }

    /// Whether the block is the next one of a turn that is made over and over, and needs nothing done.
    pub(super) fn repeats(&mut self, block: BlockId, sps: &[u64], memory: &[u64], batch: &mut Batch) -> bool {
        let Some(repeat) = &mut self.turns.repeat else { return false };
        if repeat.come == repeat.blocks.len() && repeat.blocks[0] == block {
            self.counts.add(&repeat.counts);
            if let Some(mark) = self.turns.marks.last_mut() {
                mark.counts.add(&repeat.counts);
            }
            repeat.come = 0;
            repeat.addresses.clear();
            repeat.shares.clear();
        }
        if repeat.blocks.get(repeat.come) == Some(&block) && sps.is_empty() {
            repeat.come += 1;
            repeat.addresses.extend_from_slice(memory);
            repeat.shares.push(memory.len());
            return true;
        }
        self.end_repeat(batch);
        false
    }

    /// Runs the blocks of the last turn, which was not made to its end, or was the last.
    pub(super) fn end_repeat(&mut self, batch: &mut Batch) {
        let Some(repeat) = self.turns.repeat.take() else { return };
        let mut addresses = &repeat.addresses[..];
        for (block, share) in repeat.blocks.iter().zip(&repeat.shares).take(repeat.come) {
            let (own, rest) = addresses.split_at(*share);
            addresses = rest;
            self.block_in_parts(*block, self.plan.blocks.of(*block), None, &[], own, batch);
        }
    }
}
