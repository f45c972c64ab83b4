//! Blocks in which an extent of a function begins or ends, or that call through a stub of the linkage table, or that
//! call a mathematical function: piece by piece, so that what lies in one extent, before the stub, or beside the
//! function is kept whole.
//!
//! Example: of `body return | loop call | body`, a block in which one call of a function ends and the next one begins,
//! the first piece and the last are a row of segments each, and what lies between them is passed by.
//!
//! What it buys: without it `replay -H minpc` takes 1.35 times as long where 3 x 10^5 short calls are lanes, and as
//! long as before where lanes are threads or iterations.

use super::super::blocks::{Facts, Flags, PieceFacts};
use super::ThreadState;
use super::extents::Extent;
use crate::Batch;

impl ThreadState<'_> {
    /// Whether a block can be followed in pieces: nothing is watched that looks at each segment, and there is an extent
    /// that is open or begins.
    pub(super) fn may_divide(&self, facts: Facts) -> bool {
        !facts.flags.has(Flags::WAITS)
            && !self.turns.is_watching()
            && !self.turns.is_repeating()
            && !self.spin.is_watching()
            && self.tries.is_none()
            && !self.unsettled
            && !self.yielded
            && if self.extents.is_open() { !self.stack.in_leaf() } else { facts.flags.has(Flags::ENTRY) }
    }

    /// Follows the thread through a block, piece by piece.
    pub(super) fn block_in_pieces(
        &mut self,
        pieces: &[PieceFacts],
        mut sps: &[u64],
        mut memory: &[u64],
        batch: &mut Batch,
    ) {
        for PieceFacts { facts, recorded, addresses } in pieces {
            let (own_sps, own_memory);
            (own_sps, sps) = sps.split_at((*recorded).into());
            (own_memory, memory) = memory.split_at(*addresses as usize);
            self.begin_with(*facts, batch);
            if !self.may_keep_whole(*facts, own_sps, own_memory, batch) {
                self.block_in_parts(*facts, None, own_sps, own_memory, batch);
            }
        }
    }

    /// Before a piece: begins an extent with its first segment, where that is the region's function, and is kept.
    fn begin_with(&mut self, facts: Facts, batch: &mut Batch) {
        let first = self.plan.blocks.codes(facts).first().and_then(|code| code.as_segment());
        let Some(first) = first.filter(|first| self.plan.blocks.is_entry(*first)) else { return };
        if self.extents.is_open() || facts.flags.has(Flags::PAUSE) {
            return;
        }
        self.begin(Extent::of_function(self.sp, self.stack_top, self.frames.handlers()), batch);
        if self.reason(first).is_none() {
            self.begin_stream(first, batch);
            self.update();
        }
    }
}
