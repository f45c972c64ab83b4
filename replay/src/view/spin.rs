//! Spin-waiting in the program's own code.
//!
//! A thread that comes back to a segment with a `pause` (or to the one after a yield) after at most [`WINDOW`] kept
//! basic blocks, with the same stack pointer and the same locks, and has written to nothing but its stack, has waited.
//! The pass it has just made is taken back out of the stream, so that of a wait however long one pass stays: the one
//! that found the wait over.

use heuristics::SegmentId;

use super::locks::HeldLock;
use crate::Batch;

/// How many kept basic blocks a spin-wait loop has at most.
const WINDOW: u64 = 8;

/// The stream's state before a segment at which a thread may be spinning.
#[derive(Clone, Debug)]
pub(super) struct Mark {
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
    /// What the replay takes the stack pointer for there.
    pub expected_sp: u64,
    /// What the replay takes the call level for there.
    pub expected_level: u32,
}

/// The marks of the last few basic blocks, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Spin {
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
        expected: (u64, u32),
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
            expected_sp: expected.0,
            expected_level: expected.1,
        });
    }
}
