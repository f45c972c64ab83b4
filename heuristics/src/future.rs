//! What lanes will run: for models that no hardware could have, which ask what others would gain by knowing.

use crate::{Lane, SegmentId};

/// What lanes will run next, as far as a model asked for it ([`crate::Heuristic::horizon`]).
pub trait Future {
    /// Shows the segments that the lane will run, from the one that it stands before on, until `see` says no or no more
    /// is known. Waits between them are not shown.
    fn look(&self, lane: Lane, see: &mut dyn FnMut(SegmentId) -> bool);
}

/// A segment in a lane's future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// How many instructions the lane runs before it.
    pub distance: u32,
    /// The segment.
    pub segment: SegmentId,
}
