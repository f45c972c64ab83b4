//! Where the engine gets its lanes from: a view of a trace, or lanes kept in memory.

use heuristics::SegmentTable;

use crate::view::View;
use crate::{Batch, LaneStream, LockId, Result};

/// Lanes that can be replayed, as often as needed.
pub trait LaneSource: Sync {
    /// How many lanes there are.
    fn lanes(&self) -> usize;

    /// The static program.
    fn segments(&self) -> &SegmentTable;

    /// A lane's stream from its beginning.
    fn stream(&self, lane: usize) -> Box<dyn LaneStream + '_>;

    /// A lock's name for messages.
    fn lock_name(&self, lock: LockId) -> String;

    /// The lane's generation: lanes share warps with lanes of their own generation only, and run after those of smaller
    /// ones. Default: 0.
    fn generation(&self, _lane: usize) -> u32 {
        0
    }
}

impl LaneSource for View {
    fn lanes(&self) -> usize {
        View::lanes(self).len()
    }

    fn segments(&self) -> &SegmentTable {
        View::segments(self)
    }

    fn stream(&self, lane: usize) -> Box<dyn LaneStream + '_> {
        View::stream(self, lane)
    }

    fn lock_name(&self, lock: LockId) -> String {
        View::lock_name(self, lock)
    }

    fn generation(&self, lane: usize) -> u32 {
        View::lanes(self)[lane].generation
    }
}

/// A lane's whole stream, kept in memory.
pub(crate) struct Kept<'a> {
    batches: std::slice::Iter<'a, Batch>,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(batches: &'a [Batch]) -> Kept<'a> {
        Kept { batches: batches.iter() }
    }
}

impl LaneStream for Kept<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        let next = self.batches.next();
        if let Some(kept) = next {
            batch.codes.extend_from_slice(&kept.codes);
            batch.controls.extend_from_slice(&kept.controls);
            batch.sps.extend_from_slice(&kept.sps);
            batch.addresses.extend_from_slice(&kept.addresses);
        }
        Ok(next.is_some())
    }
}
