//! Blocks that are kept whole and return to frames that were open before them, or have recorded stack pointers: of
//! their segments only those are looked at that call, return, or record.

use super::super::blocks::{Ends, Facts, MarkEvent};
use super::ThreadState;
use crate::Batch;

impl ThreadState<'_> {
    /// Keeps a block whole that returns from functions called before it, or has recorded stack pointers, where each
    /// return closes one frame and nothing else closes any; false, and nothing is kept, where it is otherwise.
    pub(super) fn keep_outlined(&mut self, facts: Facts, sps: &[u64], memory: &[u64], batch: &mut Batch) -> bool {
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
        self.push_whole(facts, memory, batch);
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
