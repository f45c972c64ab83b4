//! A view is a source of lanes.

use std::ops::Range;

use heuristics::{SegmentId, SegmentTable};
use trace_format::Stop;

use super::View;
use crate::{EpisodeId, GpuCost, Kept, LaneSource, LaneStream, LockId, Locks};

impl LaneSource for View {
    fn lanes(&self) -> usize {
        View::lanes(self).len()
    }

    fn segments(&self) -> &SegmentTable {
        View::segments(self)
    }

    fn gpu_cost(&self, id: SegmentId) -> GpuCost {
        View::gpu_cost(self, id)
    }

    fn constants(&self) -> Vec<Range<u64>> {
        View::constants(self)
    }

    fn stack_end(&self) -> u64 {
        View::stack_end(self)
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

    fn are_turns(&self) -> bool {
        self.summary().cut.as_ref().is_some_and(|cut| !cut.loops.is_empty())
    }

    fn stop(&self) -> Stop {
        View::stop(self)
    }

    fn locks(&self) -> Locks {
        View::locks(self)
    }

    fn lock_name(&self, lock: LockId) -> String {
        View::lock_name(self, lock)
    }

    fn begins_launch(&self, episode: EpisodeId) -> bool {
        View::begins_launch(self, episode)
    }

    fn generation(&self, lane: usize) -> u32 {
        View::lanes(self)[lane].generation
    }
}
