//! Blocks that are kept whole: of their segments only those are looked at that call, return, or have their stack
//! pointer recorded, and the stream gets one code for the block.
//!
//! What it buys: without it `replay -H minpc` takes 2.1 times as long for threads of swaptions, 1.4 of fluidanimate,
//! and 2.8 where iterations of a loop of 3 x 10^5 short ones are lanes. Another way beside it, for blocks whose calls,
//! returns and stack pointers need no look, bought 0 to 4% of that and is gone.

use super::super::blocks::{Ends, Facts, Flags, MarkEvent};
use super::{Pending, ThreadState};
use crate::Batch;

impl ThreadState<'_> {
    /// Keeps a block, or a piece of one, whole, where nothing has to be looked at between its segments; false, and
    /// nothing is kept, where it is otherwise.
    // Most blocks go here and no further.
    #[inline]
    pub(super) fn may_keep_whole(&mut self, facts: Facts, sps: &[u64], memory: &[u64], batch: &mut Batch) -> bool {
        const LONG_WAY: u8 = Flags::WAITS | Flags::PAUSE | Flags::FILTERED | Flags::MARKER | Flags::STUB;
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
    fn keep_whole(&mut self, facts: Facts, sps: &[u64], memory: &[u64], batch: &mut Batch) -> bool {
        let plan = self.plan;
        let Some((last, marks)) = plan.blocks.outline(facts).split_last() else { return false };
        self.correct(batch);
        let highest = self.extents.ceiling();
        let (mut from, mut left) = (self.sp, sps.iter());
        let mut lowest = self.frames.height();
        self.closed.clear();
        let ends = 'whole: {
            for mark in marks {
                if from.wrapping_add_signed(i64::from(mark.rise)) > self.frames.ceiling().min(highest) {
                    break 'whole None;
                }
                let sp = from.wrapping_add_signed(i64::from(mark.sp));
                match mark.event {
                    MarkEvent::Call => self.frames.push(sp),
                    MarkEvent::Recorded => {
                        from = *left.next().expect("the reader gives as many stack pointers as the block has");
                    }
                    MarkEvent::Return => match self.frames.close_one(sp) {
                        Some(closed) if self.frames.height() < lowest => {
                            lowest = self.frames.height();
                            self.closed.push(closed);
                        }
                        Some(_) => {}
                        // The outermost function has no frame.
                        None if self.frames.height() == 0 => {}
                        None => break 'whole None,
                    },
                    MarkEvent::Last(_) => unreachable!("the last mark is the only one that is"),
                }
            }
            match last.event {
                MarkEvent::Last(ends)
                    if from.wrapping_add_signed(i64::from(last.rise)) <= self.frames.ceiling().min(highest) =>
                {
                    Some(ends)
                }
                _ => None,
            }
        };
        let Some(ends) = ends else {
            self.frames.put_back(lowest, &self.closed);
            return false;
        };
        self.linkage.run();
        batch.codes.push(facts.whole);
        self.folded_away += usize::from(facts.segments) - 1;
        batch.addresses.extend_from_slice(memory);
        self.counts.kept += u64::from(facts.len);
        batch.sps.extend(sps.iter().map(|sp| sp.wrapping_sub(self.base) as i64));
        self.sp = sps.last().copied().unwrap_or(self.sp).wrapping_add_signed(i64::from(facts.net));
        self.expected.sp = self.sp;
        self.expected.level = self.frames.level();
        self.raise_ceiling();
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
}
