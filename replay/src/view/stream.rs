//! A lane's stream, made from its thread's stream as it is read.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use heuristics::SegmentId;
use trace_format::{BlockId, Event, Item, Seq, ThreadId, ThreadStream, Trace};

use super::first_look::generations::{Part, WHOLE_THREAD};
use super::plan::Plan;
use super::stacks::OnStacks;
use super::text::TextState;
use super::thread_state::{Counts, ThreadState, push_control};
use super::threads::Stayed;
use super::waits::unordered::UnorderedWaits;
use crate::lanes::kept::{Keeper, Kept};
use crate::{Batch, Control, LaneStream, LockId, Result, Rows};

/// A batch ends with the first block after this many segments and controls where it may: large enough that starting a
/// batch costs nothing beside filling it, small enough (64 KiB of codes) that the batches of a warp stay in the caches.
const BATCH_CODES: usize = 16 << 10;

/// A machine that follows a thread's stream, item by item, and makes the lane's.
pub(super) trait Follower: Send {
    /// The thread ran a block, whole.
    fn block(&mut self, block: BlockId, sps: &[u64], memory: &[u64], batch: &mut Batch);

    /// The thread ran the first instructions of a block.
    fn partial(&mut self, block: BlockId, executed: u32, sps: &[u64], memory: &[u64], batch: &mut Batch);

    /// Something happened besides running blocks.
    fn event(&mut self, event: Event, batch: &mut Batch);

    /// The thread's stream has ended.
    fn end(&mut self, batch: &mut Batch);

    /// Whether the lane ends before the thread does, and has; what the batch then holds of what follows is cut off.
    fn is_over(&self, batch: &mut Batch) -> bool;

    /// Whether a batch may end here.
    fn may_cut(&self, batch: &Batch) -> bool;

    /// How many codes the batch has when it is unfolded, or a few more.
    fn unfolded(&self, batch: &Batch) -> usize;

    /// The batch is handed on: what comes next follows its last segment.
    fn hand_on(&mut self, batch: &Batch);

    /// What became of the thread.
    fn followed(self) -> Followed;
}

/// What became of a thread.
pub(super) struct Followed {
    /// Of its instructions.
    pub counts: Counts,
    /// What it waited for that orders no lanes.
    pub unordered: UnorderedWaits,
    /// The locks of the program's own that it took in the region.
    pub own_locks: BTreeSet<LockId>,
    /// When it reached the region; none: never.
    pub first: Option<Seq>,
    /// The first segment that is kept of it.
    pub begins_with: Option<SegmentId>,
    /// Its stays in the region, by the joins between them.
    pub parts: Vec<Part>,
    /// What it ran on stacks of green threads, where lanes end with their stack for a while.
    pub stacks: OnStacks,
}

/// Reads a thread as a lane.
pub(super) struct ThreadReader<S> {
    source: ThreadStream,
    state: S,
    ended: bool,
    rows: Arc<Rows>,
    /// The last batch, where it was unfolded.
    folded: Batch,
}

impl<S: Follower> ThreadReader<S> {
    /// Follows the thread from before its first item.
    fn new(trace: &Trace, plan: &Plan, thread: ThreadId, state: S) -> ThreadReader<S> {
        ThreadReader {
            source: trace.stream(thread),
            state,
            ended: false,
            rows: Arc::clone(&plan.blocks.rows),
            folded: Batch::default(),
        }
    }

    /// Reads to the end, to see what becomes of the thread, and keeps the stream, if it is one lane.
    fn count(mut self, keeper: &Keeper) -> Result<(Followed, Kept)> {
        let (mut batch, mut keeping) = (Batch::default(), keeper.stream(Arc::clone(&self.rows)));
        while self.next_folded(&mut batch)? {
            keeping.add(&batch)?;
        }
        Ok((self.state.followed(), keeping.finish()))
    }
}

/// Reads what a lane is of these threads, one after another.
pub(super) fn read_all<'a>(trace: &Trace, plan: &'a Plan, stays: &[Stayed]) -> Box<dyn LaneStream + 'a> {
    let mut streams = stays.iter().map(|(thread, own)| read(trace, plan, *thread, own.clone()));
    match (streams.next(), stays.len()) {
        (Some(only), 1) => only,
        (first, _) => Box::new(Chain { streams: first.into_iter().chain(streams).collect(), begins: false }),
    }
}

/// Streams one after another.
struct Chain<'a> {
    streams: VecDeque<Box<dyn LaneStream + 'a>>,
    /// Whether the next batch is the first of another stream than the first.
    begins: bool,
}

impl Chain<'_> {
    fn next(
        &mut self,
        batch: &mut Batch,
        next: impl Fn(&mut (dyn LaneStream + '_), &mut Batch) -> Result<bool>,
    ) -> Result<bool> {
        while let Some(stream) = self.streams.front_mut() {
            if next(stream.as_mut(), batch)? {
                if std::mem::take(&mut self.begins) {
                    begin_anew(batch);
                }
                return Ok(true);
            }
            // The last one stays, for its rows.
            if self.streams.len() == 1 {
                return Ok(false);
            }
            self.streams.pop_front();
            self.begins = true;
        }
        Ok(false)
    }
}

/// The lane is at level 1 and its stack pointer counts as 0 before what the batch holds.
fn begin_anew(batch: &mut Batch) {
    let mut first = Batch::default();
    push_control(&mut first, Control::Sp(0));
    push_control(&mut first, Control::Level(1));
    first.append(std::mem::take(batch));
    *batch = first;
}

impl LaneStream for Chain<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        self.next(batch, |stream, batch| stream.next_batch(batch))
    }

    fn next_folded(&mut self, batch: &mut Batch) -> Result<bool> {
        self.next(batch, |stream, batch| stream.next_folded(batch))
    }

    fn rows(&self) -> Arc<Rows> {
        self.streams.front().map(|stream| stream.rows()).unwrap_or_default()
    }
}

/// Reads a thread as a lane; of its extents of the region, those of these numbers are the lane's.
fn read<'a>(trace: &Trace, plan: &'a Plan, thread: ThreadId, own: Range<u64>) -> Box<dyn LaneStream + 'a> {
    if plan.is_text {
        Box::new(ThreadReader::new(trace, plan, thread, TextState::new(plan)))
    } else {
        Box::new(ThreadReader::new(trace, plan, thread, ThreadState::new(plan, thread.index(), own)))
    }
}

/// Reads a thread to the end, to see what becomes of it, and keeps its stream, if it is one lane.
pub(super) fn count(trace: &Trace, plan: &Plan, thread: ThreadId, keeper: &Keeper) -> Result<(Followed, Kept)> {
    if plan.is_text {
        ThreadReader::new(trace, plan, thread, TextState::new(plan)).count(keeper)
    } else {
        ThreadReader::new(trace, plan, thread, ThreadState::new(plan, thread.index(), WHOLE_THREAD)).count(keeper)
    }
}

impl<S: Follower> LaneStream for ThreadReader<S> {
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
