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
    let mut lanes = candidates.iter();
    let mut reference = lanes.next().expect("a choice is asked for only while a lane is ready");
    let mut smallest = key(warp.lane(reference));
    for lane in lanes {
        let key = key(warp.lane(lane));
        if key < smallest {
            (reference, smallest) = (lane, key);
        }
    }
    (reference, warp.mates(reference))
}
