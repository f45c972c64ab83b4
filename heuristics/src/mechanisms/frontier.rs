//! The order in which thread frontiers let lanes run, which `tf-stack` and `tf-branch` share.

use std::cmp::Reverse;

use crate::{Choice, Lane, LaneSet, WarpView};

/// A lane's place in the order: frames opened last first, in each the block of the highest priority. The smallest goes
/// first.
fn key(warp: &WarpView, lane: Lane) -> (Reverse<u32>, u32) {
    let state = warp.lane(lane);
    (Reverse(state.level), warp.program().control_flow.priority(state.place))
}

/// The first lane in the order, and what it may do. Lanes that wait at a barrier are passed over; where none stands
/// before it, a lane that waits for a lock goes round its spin loop for ever, as that comes before the block that the
/// lock opens.
///
/// # Errors
/// The lanes that wait for a lock and come first.
pub(crate) fn first(warp: &WarpView) -> Result<Lane, Choice> {
    let ready = warp.ready().iter().min_by_key(|l| key(warp, *l));
    let spinning = warp.waiting_for_lock().iter().min_by_key(|l| key(warp, *l));
    match (ready, spinning) {
        (Some(ready), Some(spins)) if key(warp, ready) < key(warp, spins) => Ok(ready),
        (Some(ready), None) => Ok(ready),
        (_, Some(spins)) => {
            let with = warp.waiting_for_lock().iter().filter(|l| key(warp, *l) == key(warp, spins));
            Err(Choice::Deadlock(with.collect()))
        }
        (None, None) => Err(Choice::Deadlock(LaneSet::EMPTY)),
    }
}
