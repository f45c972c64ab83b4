//! Models that keep track of their lanes.

use crate::{LaneSet, LaneState, SegmentTable};

/// A model that keeps track of where lanes stand: the engine tells it where they go, instead of showing it the whole
/// warp before each choice. What it chooses is what [`crate::Heuristic::choose`] does, of a warp without turns at
/// locks.
pub trait Tracking {
    /// No lane stands anywhere; the engine then tells where each does.
    fn restart(&mut self);

    /// These lanes, at least one, stand ready before this instruction of their segment. They stood nowhere. The state
    /// is that of the lowest; the others are at its pc.
    fn stand(&mut self, lanes: LaneSet, state: &LaneState, instruction: u32, segments: &SegmentTable);

    /// Picks those that run next among the lanes that stand, of which there is one. The picked ones stand nowhere until
    /// the engine tells where they have come. `states`: by lane.
    fn pick(&mut self, states: &[LaneState]) -> LaneSet;
}
