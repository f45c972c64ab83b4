//! Lanes that take turns, one instruction each.

use crate::{Lane, LaneSet};

/// How lanes take turns that run one instruction each.
#[derive(Debug)]
pub enum Rotation<'a> {
    /// Each alone.
    Alone,
    /// With all ready lanes at its pc; this says whose turn it is.
    WithMates(&'a mut Round),
}

/// The next of `lanes` after `last`, going round.
pub(crate) fn next_after(lanes: LaneSet, last: Option<Lane>) -> Option<Lane> {
    let later = last.and_then(|l| (lanes - LaneSet::first(l.index() + 1)).lowest());
    later.or_else(|| lanes.lowest())
}

/// Whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Round {
    last: Option<Lane>,
    ran: LaneSet,
}

impl Round {
    /// The lanes that run next: the one whose turn it is, and its mates.
    #[inline]
    pub fn next(&mut self, ready: LaneSet, mates: impl FnOnce(Lane) -> LaneSet) -> LaneSet {
        let mut candidates = ready - self.ran;
        if candidates.is_empty() {
            self.ran = LaneSet::EMPTY;
            candidates = ready;
        }
        self.last = next_after(candidates, self.last);
        let lanes = self.last.map_or(LaneSet::EMPTY, mates);
        self.ran = self.ran | lanes;
        lanes
    }
}
