//! Blocks that are kept whole: of their segments only those are looked at that call, return, or have their stack
//! pointer recorded, and the stream gets one code for the block.
//!
//! What it buys: without it `replay -H minpc` takes 2.1 times as long for threads of swaptions, 1.4 of fluidanimate,
//! and 2.8 where iterations of a loop of 3 x 10^5 short ones are lanes.

use super::super::blocks::{Ends, Facts, Flags, Mark, MarkEvent};
use super::{Pending, ThreadState};
use crate::Batch;

impl ThreadState<'_> {
    /// Keeps a block, or a piece of one, whole, where nothing has to be looked at between its segments; false, and
    /// nothing is kept, where it is otherwise.
    // Most blocks go here and no further.
    #[inline(always)]
    pub(super) fn may_keep_whole(&mut self, facts: Facts, sps: &[u64], memory: &[u64], batch: &mut Batch) -> bool {
        const LONG_WAY: u16 =
            Flags::WAITS | Flags::PAUSE | Flags::FILTERED | Flags::MARKER | Flags::STUB | Flags::LOCK | Flags::SWITCH;
        if !self.quiet || facts.flags.has(LONG_WAY) || self.linkage.binds_above(self.sp) {
            return false;
        }
        if self.pending != Pending::Nothing {
            self.resolve(true, batch);
        }
        self.come_from_loader();
        if facts.flags.has(Flags::STUB_FIRST) && !self.linkage.is_sent() {
            return false;
        }
        self.keep_whole(facts, sps, memory, batch)
    }

    /// The same, where each return closes one frame and nothing else closes any.
    #[inline(always)]
    fn keep_whole(&mut self, facts: Facts, sps: &[u64], memory: &[u64], batch: &mut Batch) -> bool {
        let plan = self.plan;
        let Some((last, inner)) = plan.blocks.outline(facts).split_last() else { return false };
        let MarkEvent::Last(ends) = last.event else { return false };
        self.correct(batch);
        let from = match inner {
            [] if self.rises_above(self.sp, *last) => return false,
            [] => self.sp,
            inner => match self.follow(inner, *last, sps) {
                Some(from) => from,
                None => return false,
            },
        };
        self.linkage.run();
        batch.codes.push(facts.whole);
        self.folded_away += usize::from(facts.segments) - 1;
        if !memory.is_empty() {
            batch.addresses.extend_from_slice(memory);
        }
        self.counts.kept += u64::from(facts.len);
        if let Some(recorded) = sps.last() {
            batch.sps.extend(sps.iter().map(|sp| sp.wrapping_sub(self.base) as i64));
            self.sp = *recorded;
        }
        self.sp = self.sp.wrapping_add_signed(i64::from(facts.net));
        self.expected.sp = self.sp;
        match ends {
            Ends::Otherwise => {}
            Ends::WithCall => {
                self.called(batch.codes.len() - 1, from.wrapping_add_signed(i64::from(last.sp)));
            }
            Ends::WithReturn => self.expected.return_(),
        }
        if self.sp > self.ceiling {
            self.settle(batch);
        }
        true
    }

    /// Whether the stack pointer rises above what would close a frame or end the extent, from here to a mark.
    #[inline]
    pub(super) fn rises_above(&self, from: u64, mark: Mark) -> bool {
        from.wrapping_add_signed(i64::from(mark.rise)) > self.ceiling
    }

    /// Opens and closes what a block's inner calls and returns do; where the stack pointer stood last that was
    /// recorded. None, and nothing has changed, where frames are closed in another way.
    fn follow(&mut self, inner: &[Mark], last: Mark, sps: &[u64]) -> Option<u64> {
        let (mut from, mut left) = (self.sp, sps.iter());
        let mut lowest = self.frames.height();
        self.closed.clear();
        let mut is_whole = true;
        for mark in inner {
            is_whole = !self.rises_above(from, *mark);
            let sp = from.wrapping_add_signed(i64::from(mark.sp));
            match mark.event {
                _ if !is_whole => break,
                MarkEvent::Call => self.frames.push(sp),
                MarkEvent::Recorded => {
                    from = *left.next().expect("the reader gives as many stack pointers as the block has");
                }
                MarkEvent::Return => match self.frames.close_one(sp) {
                    Some(closed) if self.frames.height() < lowest => {
                        lowest = self.frames.height();
                        self.closed.push(closed);
                    }
                    // The outermost function has no frame.
                    closed => is_whole = closed.is_some() || self.frames.height() == 0,
                },
                MarkEvent::Last(_) => unreachable!("the last mark is the only one that is"),
            }
            if !is_whole {
                break;
            }
            self.raise_ceiling();
        }
        is_whole &= !self.rises_above(from, last);
        if !is_whole {
            self.frames.put_back(lowest, &self.closed);
            self.raise_ceiling();
        }
        self.expected.level = self.frames.level();
        is_whole.then_some(from)
    }
}
