//! A barrier register: who waits where for whom.

use crate::warp::reconvergence::Reconvergence;
use crate::{Lane, LaneSet};

/// A barrier register that is filled.
pub(super) struct Register {
    pub at: Reconvergence,
    /// By lane: how much higher its call level was than that of `at` where it was filled. Empty: none's was; lanes that
    /// reached a function through different ones run it together at different levels.
    pub shifts: Vec<i32>,
    /// The lanes that are waited for, those that are blocked included.
    pub mask: LaneSet,
    pub blocked: LaneSet,
    /// Whether it was filled for the lanes that leave a loop.
    pub for_exits: bool,
    /// Whether a GPU has instructions for it: not where it has no branch, as where arms are predicated.
    pub is_issued: bool,
    /// The region of a prediction behind which it stands.
    pub behind: Option<usize>,
}

impl Register {
    /// Where a lane waits.
    pub fn at_of(&self, lane: Lane) -> Reconvergence {
        let shift = self.shifts.get(lane.index()).copied().unwrap_or(0);
        Reconvergence { level: self.at.level.saturating_add_signed(shift), ..self.at }
    }

    /// Whether its levels are shifted so.
    // Two empty lists are not compared: that may cost hundreds of cycles, as they lie at no valid address.
    pub fn is_shifted_by(&self, shifts: &[i32]) -> bool {
        self.shifts.is_empty() && shifts.is_empty() || self.shifts == shifts
    }
}
