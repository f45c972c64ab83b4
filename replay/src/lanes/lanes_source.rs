//! Where the engine gets its lanes from: a view of a trace, or lanes kept in memory.

use std::ops::Range;

use heuristics::{SegmentId, SegmentTable};
use trace_format::Stop;

use crate::{EpisodeId, GpuCost, Kept, LaneStream, LockId, Locks};

/// Lanes that can be replayed, as often as needed.
pub trait LaneSource: Sync {
    /// How many lanes there are.
    fn lanes(&self) -> usize;

    /// The static program.
    fn segments(&self) -> &SegmentTable;

    /// What a GPU has for a segment. Default: as many instructions.
    fn gpu_cost(&self, id: SegmentId) -> GpuCost {
        GpuCost::as_here(&self.segments()[id])
    }

    /// Memory that the program cannot write, as far as it is known, in the order of addresses. Default: nothing is.
    fn constants(&self) -> Vec<Range<u64>> {
        Vec::new()
    }

    /// The highest address of all the program's threads' stacks, those that are no lane included; 0 where none is
    /// known, as by default.
    fn stack_end(&self) -> u64 {
        0
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

    /// Whether lanes are turns of loops, which may begin in copies of the same code. Default: no.
    fn are_turns(&self) -> bool {
        false
    }

    /// How work on the lanes is asked to end. Default: nobody asks.
    fn stop(&self) -> Stop {
        Stop::default()
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
