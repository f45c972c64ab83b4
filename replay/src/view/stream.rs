//! A lane's stream, made from its thread's stream as it is read.

use std::ops::Range;
use std::sync::Arc;

use heuristics::SegmentId;
use trace_format::{Item, Seq, ThreadId, ThreadStream, Trace};

use super::first_look::generations::Part;
use super::lane_state::{Counts, LaneState};
use super::plan::Plan;
use crate::lanes::kept::{Keeper, Kept};
use crate::{Batch, LaneStream, Result, Rows};

/// A batch ends with the first block after this many segments and controls where it may: large enough that starting a
/// batch costs nothing beside filling it, small enough (64 KiB of codes) that the batches of a warp stay in the caches.
const BATCH_CODES: usize = 16 << 10;

/// What becomes of a thread.
pub(super) struct Counted {
    /// Of its instructions.
    pub counts: Counts,
    /// When it came to the region; none: never.
    pub first: Option<Seq>,
    /// The first segment that is kept of it.
    pub begins_with: Option<SegmentId>,
    /// Its stays in the region, by the joins between them.
    pub parts: Vec<Part>,
    /// Its stream, if it is one lane.
    pub kept: Kept,
}

/// Reads a thread as a lane.
pub(super) struct ThreadReader<'a> {
    source: ThreadStream,
    state: LaneState<'a>,
    ended: bool,
    rows: Arc<Rows>,
    /// The last batch, where it was unfolded.
    folded: Batch,
}

impl<'a> ThreadReader<'a> {
    /// Of the thread's extents of the region, those of these numbers are the lane's.
    pub fn new(trace: &Trace, plan: &'a Plan, thread: ThreadId, own: Range<u64>) -> ThreadReader<'a> {
        ThreadReader {
            source: trace.stream(thread),
            state: LaneState::new(plan, thread.index(), own),
            ended: false,
            rows: Arc::clone(&plan.blocks.rows),
            folded: Batch::default(),
        }
    }

    /// Reads to the end, to see what becomes of the thread.
    pub fn count(mut self, keeper: &Keeper) -> Result<Counted> {
        let (mut batch, mut keeping) = (Batch::default(), keeper.stream(Arc::clone(&self.rows)));
        while self.next_folded(&mut batch)? {
            keeping.add(&batch)?;
        }
        let state = self.state;
        Ok(Counted {
            counts: state.counts(),
            first: state.first(),
            begins_with: state.begins_with(),
            parts: state.parts().to_vec(),
            kept: keeping.finish(),
        })
    }
}

impl LaneStream for ThreadReader<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        let mut folded = std::mem::take(&mut self.folded);
        let goes_on = self.next_folded(&mut folded)?;
        self.rows.unfold(&folded, batch);
        self.folded = folded;
        Ok(goes_on)
    }

    fn next_folded(&mut self, batch: &mut Batch) -> Result<bool> {
        self.state.hand_on(batch);
        batch.clear();
        while !self.ended {
            match self.source.next()? {
                Some(Item::Block { block, sps, memory }) => self.state.block(block, sps, memory, batch),
                Some(Item::Partial { block, executed, sps, memory }) => {
                    self.state.partial(block, executed, sps, memory, batch);
                }
                Some(Item::Event(event)) => self.state.event(event, batch),
                None => {
                    self.state.end(batch);
                    self.ended = true;
                }
            }
            if self.state.is_over(batch) {
                self.ended = true;
            }
            if self.state.unfolded(batch) >= BATCH_CODES && self.state.may_cut(batch) {
                break;
            }
        }
        Ok(!batch.codes.is_empty())
    }

    fn rows(&self) -> Arc<Rows> {
        Arc::clone(&self.rows)
    }
}
