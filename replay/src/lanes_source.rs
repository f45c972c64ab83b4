//! Where the engine gets its lanes from: a view of a trace, or lanes kept in memory.

use heuristics::SegmentTable;

use crate::view::View;
use crate::{Kept, LaneStream, LockId};

/// Lanes that can be replayed, as often as needed.
pub trait LaneSource: Sync {
    /// How many lanes there are.
    fn lanes(&self) -> usize;

    /// The static program.
    fn segments(&self) -> &SegmentTable;

    /// A lane's stream from its beginning.
    fn stream(&self, lane: usize) -> Box<dyn LaneStream + '_>;

    /// A lane's whole stream, where it was kept in memory when the source was made: what [`LaneSource::stream`] gives,
    /// and need not be made again. Default: none is kept.
    fn kept(&self, _lane: usize) -> Option<&Kept> {
        None
    }

    /// Whether streams are in memory already, however they are read, so that nothing is won by keeping them. Default:
    /// no.
    fn is_at_hand(&self) -> bool {
        false
    }

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

    fn kept(&self, lane: usize) -> Option<&Kept> {
        View::kept(self, lane)
    }

    fn is_at_hand(&self) -> bool {
        View::is_at_hand(self)
    }

    fn lock_name(&self, lock: LockId) -> String {
        View::lock_name(self, lock)
    }

    fn generation(&self, lane: usize) -> u32 {
        View::lanes(self)[lane].generation
    }
}
