//! What lanes will run: for models that no hardware could have. They show what others would gain by knowing.

use crate::{Lane, SegmentId};

/// What lanes will run next, as far as a model asked for it ([`crate::Heuristic::horizon`]).
pub trait Future {
    /// Shows the segments that the lane will run, from the one that it stands before on except for the first `skipped`,
    /// until `see` says no or no more is known. Waits between them are not shown.
    fn look(&self, lane: Lane, skipped: usize, see: &mut dyn FnMut(SegmentId) -> bool);

    /// How many segments the lane has run: its future is the same as long as this is.
    fn passed(&self, lane: Lane) -> u64;
}
