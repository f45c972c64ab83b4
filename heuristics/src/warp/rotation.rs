//! Lanes that take turns, one instruction each.

use crate::{Lane, LaneSet, Mask};

/// How lanes take turns that run one instruction each.
#[derive(Debug)]
pub enum Rotation<'a> {
    /// Each alone.
    Alone,
    /// With all ready lanes at its pc; this says whose turn it is.
    WithMates(&'a mut Round),
}

/// The next of `lanes` after `last`, going round.
#[inline]
pub(crate) fn next_after<M: Mask>(lanes: M, last: Option<Lane>) -> Option<Lane> {
    let later = last.and_then(|last| lanes.above(last).lowest());
    later.or_else(|| lanes.lowest())
}

/// Whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round<M = LaneSet> {
    last: Option<Lane>,
    ran: M,
}

impl<M: Mask> Default for Round<M> {
    fn default() -> Round<M> {
        Round { last: None, ran: M::EMPTY }
    }
}

impl<M: Mask> Round<M> {
    /// The same round, with sets of another width that have room for the lanes.
    #[inline]
    #[must_use]
    pub fn of<N: Mask>(other: &Round<N>) -> Round<M> {
        Round { last: other.last, ran: M::of(other.ran.lanes()) }
    }

    /// The lanes that run next: the one whose turn it is, and its mates.
    #[inline]
    pub fn next(&mut self, ready: M, mates: impl FnOnce(Lane) -> M) -> M {
        let mut candidates = ready.without(self.ran);
        if candidates.is_empty() {
            self.ran = M::EMPTY;
            candidates = ready;
        }
        self.last = next_after(candidates, self.last);
        let lanes = self.last.map_or(M::EMPTY, mates);
        self.ran = self.ran.or(lanes);
        lanes
    }
}
