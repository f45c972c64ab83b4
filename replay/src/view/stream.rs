//! A lane's stream, made from its thread's stream as it is read.

use trace_format::{Item, ThreadId, ThreadStream, Trace};

use super::lane_state::{Counts, LaneState};
use super::plan::Plan;
use crate::{Batch, LaneStream, Result};

/// A batch ends with the first block after this many codes where it may: large enough that starting a batch costs
/// nothing beside filling it, small enough (64 KiB of codes) that the batches of a warp stay in the caches.
const BATCH_CODES: usize = 16 << 10;

/// Reads a thread as a lane.
pub(super) struct ThreadReader<'a> {
    source: ThreadStream,
    state: LaneState<'a>,
    ended: bool,
}

impl<'a> ThreadReader<'a> {
    pub fn new(trace: &Trace, plan: &'a Plan, thread: ThreadId) -> ThreadReader<'a> {
        ThreadReader { source: trace.stream(thread), state: LaneState::new(plan, thread.index()), ended: false }
    }

    /// Reads to the end, for the counts and the moment when the thread came to the region (none: never).
    pub fn count(mut self) -> Result<(Counts, Option<trace_format::Seq>)> {
        let mut batch = Batch::default();
        while self.next_batch(&mut batch)? {}
        Ok((self.state.counts(), self.state.first()))
    }
}

impl LaneStream for ThreadReader<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
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
            if batch.codes.len() >= BATCH_CODES && self.state.may_cut(batch) {
                break;
            }
        }
        Ok(!batch.codes.is_empty())
    }
}
