//! Where the engine gets its lanes from: a view of a trace, or lanes kept in memory.

use heuristics::{SegmentId, SegmentTable};

use crate::{EpisodeId, Kept, LaneStream, LockId, Locks};

/// Lanes that can be replayed, as often as needed.
pub trait LaneSource: Sync {
    /// How many lanes there are.
    fn lanes(&self) -> usize;

    /// The static program.
    fn segments(&self) -> &SegmentTable;

    /// How many instructions a GPU has for a segment, in tenths. Default: as many as the segment has.
    fn gpu_tenths(&self, id: SegmentId) -> u32 {
        10 * self.segments()[id].len() as u32
    }

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

    /// What lanes do at locks.
    fn locks(&self) -> Locks;

    /// A lock's name for messages.
    fn lock_name(&self, lock: LockId) -> String;

    /// Whether a launch of lanes begins with this episode, as a parallel region does. Default: no.
    fn begins_launch(&self, _episode: EpisodeId) -> bool {
        false
    }

    /// The lane's generation: lanes share warps with lanes of their own generation only, and run after those of smaller
    /// ones. Default: 0.
    fn generation(&self, _lane: usize) -> u32 {
        0
    }
}
