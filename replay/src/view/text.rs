//! A thread of a trace read from text: it is a lane as it stands. The text has blocks, stack pointers and barriers of a
//! warp, and nothing else; all of it is kept.

use std::collections::BTreeSet;

use heuristics::{SegmentId, SegmentTable};
use trace_format::{BlockId, Event, Seq, SpEffect};

use super::blocks::BlockFacts;
use super::first_look::generations::Part;
use super::plan::Plan;
use super::stacks::OnStacks;
use super::stream::{Followed, Follower};
use super::thread_state::{Counts, push_control};
use super::waits::unordered::UnorderedWaits;
use crate::{Batch, Code, Control};

/// Where the thread stands.
pub(super) struct TextState<'a> {
    table: &'a SegmentTable,
    blocks: &'a BlockFacts,
    /// Whether the stream tells where the lane begins.
    tells_extents: bool,
    begin: Option<Seq>,
    begins_with: Option<SegmentId>,
    kept: u64,
    /// How many codes more than it has the batch would have unfolded.
    folded_away: usize,
}

impl<'a> TextState<'a> {
    /// A thread before its first item.
    pub fn new(plan: &'a Plan) -> TextState<'a> {
        TextState {
            table: &plan.table,
            blocks: &plan.blocks,
            tells_extents: plan.tells_extents,
            begin: None,
            begins_with: None,
            kept: 0,
            folded_away: 0,
        }
    }

    /// Before the first segment.
    fn begin_with(&mut self, first: SegmentId, batch: &mut Batch) {
        if self.begins_with.is_none() {
            self.begins_with = Some(first);
            if self.tells_extents {
                push_control(batch, Control::Begin { after: self.begin.unwrap_or_default(), part: 0 });
            }
        }
    }
}

impl Follower for TextState<'_> {
    #[inline]
    fn block(&mut self, block: BlockId, sps: &[u64], memory: &[u64], batch: &mut Batch) {
        let facts = self.blocks.of(block);
        if let Some(first) = self.blocks.codes(facts)[0].as_segment() {
            self.begin_with(first, batch);
        }
        batch.codes.push(facts.whole);
        batch.sps.extend(sps.iter().map(|sp| *sp as i64));
        batch.addresses.extend_from_slice(memory);
        self.folded_away += usize::from(facts.segments) - 1;
        self.kept += u64::from(facts.len);
    }

    fn partial(&mut self, block: BlockId, executed: u32, sps: &[u64], memory: &[u64], batch: &mut Batch) {
        let (mut left, mut sps, mut memory) = (executed as usize, sps.iter(), memory);
        let codes = self.blocks.codes(self.blocks.of(block));
        for id in codes.iter().filter_map(|code| code.as_segment()) {
            let segment = &self.table[id];
            if left < segment.len() {
                break;
            }
            left -= segment.len();
            self.begin_with(id, batch);
            batch.codes.push(Code::segment(id));
            let (addresses, rest) = memory.split_at(segment.addresses as usize);
            batch.addresses.extend_from_slice(addresses);
            memory = rest;
            if segment.sp == SpEffect::Recorded {
                batch.sps.extend(sps.next().map(|sp| *sp as i64));
            }
            self.kept += segment.len() as u64;
        }
    }

    fn event(&mut self, event: Event, batch: &mut Batch) {
        match event {
            Event::ThreadStart { seq, .. } => self.begin = Some(seq),
            Event::WarpBarrier => push_control(batch, Control::MeetAll),
            _ => {}
        }
    }

    fn end(&mut self, _: &mut Batch) {}

    #[inline]
    fn is_over(&self, _: &mut Batch) -> bool {
        false
    }

    #[inline]
    fn may_cut(&self, batch: &Batch) -> bool {
        batch.codes.last().is_some_and(|code| !code.is_control())
    }

    #[inline]
    fn unfolded(&self, batch: &Batch) -> usize {
        batch.codes.len() + self.folded_away
    }

    fn hand_on(&mut self, _: &Batch) {
        self.folded_away = 0;
    }

    fn followed(self) -> Followed {
        let part = self.begin.map(|begin| Part { extent: 0, begin, kept_before: 0 });
        Followed {
            counts: Counts { kept: self.kept, ..Counts::default() },
            stacks: OnStacks::default(),
            unordered: UnorderedWaits::default(),
            own_locks: BTreeSet::new(),
            first: self.begin,
            begins_with: self.begins_with,
            parts: part.into_iter().collect(),
        }
    }
}
