//! Spin-waiting in the program's own code.
//!
//! A thread that comes back to a segment with a `pause` (or to the one after a yield) after at most [`WINDOW`] kept
//! basic blocks, with the same stack pointer and the same locks, and has written to nothing but its stack, has waited.
//! The pass it has just made is taken back out of the stream, so that of a wait however long one pass stays: the one
//! that found the wait over.

use heuristics::SegmentId;

use super::super::super::locks::HeldLock;
use super::super::Expected;
use crate::Batch;

/// How many kept basic blocks a spin-wait loop has at most.
const WINDOW: u64 = 8;

/// The stream's state before a segment at which a thread may be spinning.
#[derive(Clone, Debug)]
pub(in crate::view::thread_state) struct Mark {
    segment: SegmentId,
    sp: u64,
    held: Vec<HeldLock>,
    /// How many basic blocks were kept before.
    at: u64,
    codes: usize,
    controls: usize,
    sps: usize,
    addresses: usize,
    /// How many instructions were kept before.
    pub kept: u64,
    /// What the replay expects there.
    pub expected: Expected,
}

/// The marks of the last few basic blocks, oldest first.
#[derive(Clone, Debug, Default)]
pub(in crate::view::thread_state) struct Spin {
    marks: Vec<Mark>,
    blocks: u64,
}

impl Spin {
    /// Whether a pass of a loop is being watched.
    #[inline]
    pub fn is_watching(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Stops watching: the lane did something that is not waiting.
    pub fn forget(&mut self) {
        self.marks.clear();
    }

    /// Another basic block is kept.
    pub fn block_kept(&mut self) {
        if self.is_watching() {
            self.blocks += 1;
            let now = self.blocks;
            self.marks.retain(|m| now - m.at <= WINDOW);
        }
    }

    /// The thread stands before this segment. When it has come back to it, the pass is cut off the batch, and the
    /// state before it returned.
    pub fn come_to(&mut self, segment: SegmentId, sp: u64, held: &[HeldLock], batch: &mut Batch) -> Option<Mark> {
        let same = |m: &Mark| m.segment == segment && m.sp == sp && m.held == held;
        let at = self.marks.iter().rposition(same)?;
        self.marks.truncate(at + 1);
        let mark = self.marks.pop()?;
        batch.codes.truncate(mark.codes);
        batch.controls.truncate(mark.controls);
        batch.sps.truncate(mark.sps);
        batch.addresses.truncate(mark.addresses);
        Some(mark)
    }

    /// Watches for a return to this segment.
    pub fn mark(
        &mut self,
        segment: SegmentId,
        sp: u64,
        held: &[HeldLock],
        kept: u64,
        expected: Expected,
        batch: &Batch,
    ) {
        self.marks.push(Mark {
            segment,
            sp,
            held: held.to_vec(),
            at: self.blocks,
            codes: batch.codes.len(),
            controls: batch.controls.len(),
            sps: batch.sps.len(),
            addresses: batch.addresses.len(),
            kept,
            expected,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    const EXPECTED: Expected = Expected { sp: 40, level: 2 };

    fn keep(batch: &mut Batch, segment: u32) {
        batch.codes.push(Code::segment(SegmentId(segment)));
        batch.addresses.push(u64::from(segment));
    }

    #[test]
    fn a_pass_that_comes_back_to_where_it_began_is_cut_off() {
        let (mut spin, mut batch) = (Spin::default(), Batch::default());
        keep(&mut batch, 1);
        assert!(!spin.is_watching());
        spin.mark(SegmentId(2), 40, &[], 7, EXPECTED, &batch);
        let before = batch.clone();
        [2, 3].iter().for_each(|segment| keep(&mut batch, *segment));
        assert!(spin.come_to(SegmentId(2), 32, &[], &mut batch).is_none(), "deeper in the stack");
        assert!(spin.come_to(SegmentId(3), 40, &[], &mut batch).is_none(), "elsewhere");
        let mark = spin.come_to(SegmentId(2), 40, &[], &mut batch).unwrap();
        assert!(batch == before && (mark.kept, mark.expected) == (7, EXPECTED));
        assert!(!spin.is_watching());
    }

    #[test]
    fn an_inner_pass_is_cut_off_alone_and_an_outer_one_with_it() {
        let (mut spin, mut batch) = (Spin::default(), Batch::default());
        for segment in [1, 2] {
            spin.mark(SegmentId(segment), 40, &[], 0, EXPECTED, &batch);
            keep(&mut batch, segment);
        }
        assert!(spin.come_to(SegmentId(2), 40, &[], &mut batch).is_some());
        assert!(spin.is_watching() && batch.codes.len() == 1);
        spin.mark(SegmentId(2), 40, &[], 0, EXPECTED, &batch);
        keep(&mut batch, 2);
        assert!(spin.come_to(SegmentId(1), 40, &[], &mut batch).is_some());
        assert!(!spin.is_watching() && batch.codes.is_empty());
    }

    #[test]
    fn a_long_way_or_work_in_between_is_no_waiting() {
        let (mut spin, mut batch) = (Spin::default(), Batch::default());
        spin.mark(SegmentId(1), 40, &[], 0, EXPECTED, &batch);
        (0..WINDOW).for_each(|_| spin.block_kept());
        assert!(spin.is_watching());
        spin.block_kept();
        assert!(!spin.is_watching() && spin.come_to(SegmentId(1), 40, &[], &mut batch).is_none());
        spin.mark(SegmentId(1), 40, &[], 0, EXPECTED, &batch);
        spin.forget();
        assert!(!spin.is_watching());
    }
}
