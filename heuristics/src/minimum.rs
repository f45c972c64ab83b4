//! The rule that the MinPC family shares: the reference lane is the one with the smallest key, and all ready lanes at
//! its pc run with it.

use crate::{Lane, LaneSet, LaneState, WarpView};

/// The lanes at the pc of the lane with the smallest key among `candidates`. Ties go to the lowest lane.
///
/// # Panics
/// When there is no candidate.
pub(crate) fn with_smallest<K: Ord>(
    warp: &WarpView,
    candidates: LaneSet,
    key: impl Fn(&LaneState) -> K,
) -> (Lane, LaneSet) {
    let reference = candidates
        .iter()
        .min_by_key(|lane| (key(warp.lane(*lane)), *lane))
        .expect("a choice is asked for only while a lane is ready");
    (reference, warp.mates(reference))
}
