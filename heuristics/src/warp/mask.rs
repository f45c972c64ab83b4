//! Sets of lanes as wide as the warp needs them.

use crate::{Lane, LaneSet};

/// A set of lanes.
pub trait Mask: Copy + PartialEq + Send {
    /// No lane.
    const EMPTY: Self;
    /// The same lanes, which it has room for.
    fn of(lanes: LaneSet) -> Self;
    /// The same lanes.
    fn lanes(self) -> LaneSet;
    /// Those in both.
    fn and(self, other: Self) -> Self;
    /// Those in either.
    fn or(self, other: Self) -> Self;
    /// Those not in the other.
    fn without(self, other: Self) -> Self;
    /// How many there are.
    fn count(self) -> usize;
    /// Those but the lowest.
    fn but_lowest(self) -> Self;
    /// The lowest of them.
    fn lowest(self) -> Option<Lane>;
    /// Those with this number or a higher one.
    fn not_below(self, lane: Lane) -> Self;
    /// Those with a higher number than this one.
    fn above(self, lane: Lane) -> Self;
    /// Whether the lane is in it.
    fn has(self, lane: Lane) -> bool;

    /// The set of one lane.
    #[inline]
    fn only(lane: Lane) -> Self {
        Self::of(LaneSet::only(lane))
    }

    /// Whether there is none.
    #[inline]
    fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// The lanes in ascending order.
    #[inline]
    fn each(self) -> impl Iterator<Item = Lane> {
        let mut left = self;
        std::iter::from_fn(move || {
            let lowest = left.lowest()?;
            left = left.but_lowest();
            Some(lowest)
        })
    }
}

/// Of warps with at most 64 lanes.
impl Mask for u64 {
    const EMPTY: u64 = 0;

    #[inline]
    fn of(lanes: LaneSet) -> u64 {
        lanes.words(64)[0]
    }

    #[inline]
    fn lanes(self) -> LaneSet {
        LaneSet::of_word(self)
    }

    #[inline]
    fn and(self, other: u64) -> u64 {
        self & other
    }

    #[inline]
    fn or(self, other: u64) -> u64 {
        self | other
    }

    #[inline]
    fn without(self, other: u64) -> u64 {
        self & !other
    }

    #[inline]
    fn count(self) -> usize {
        // Most sets have one lane, and counting takes a dozen operations where processors don't count.
        if self.but_lowest() == 0 { usize::from(self != 0) } else { self.count_ones() as usize }
    }

    #[inline]
    fn only(lane: Lane) -> u64 {
        1 << lane.index()
    }

    #[inline]
    fn lowest(self) -> Option<Lane> {
        (self != 0).then(|| Lane(self.trailing_zeros() as u8))
    }

    #[inline]
    fn not_below(self, lane: Lane) -> u64 {
        self >> lane.index() << lane.index()
    }

    #[inline]
    fn above(self, lane: Lane) -> u64 {
        self & u64::MAX << lane.index() << 1
    }

    #[inline]
    fn has(self, lane: Lane) -> bool {
        self >> lane.index() & 1 == 1
    }

    #[inline]
    fn but_lowest(self) -> u64 {
        self & self.wrapping_sub(1)
    }
}

impl Mask for LaneSet {
    const EMPTY: LaneSet = LaneSet::EMPTY;

    #[inline]
    fn of(lanes: LaneSet) -> LaneSet {
        lanes
    }

    #[inline]
    fn lanes(self) -> LaneSet {
        self
    }

    #[inline]
    fn and(self, other: LaneSet) -> LaneSet {
        self & other
    }

    #[inline]
    fn or(self, other: LaneSet) -> LaneSet {
        self | other
    }

    #[inline]
    fn without(self, other: LaneSet) -> LaneSet {
        self - other
    }

    #[inline]
    fn count(self) -> usize {
        self.len()
    }

    #[inline]
    fn lowest(self) -> Option<Lane> {
        LaneSet::lowest(&self)
    }

    #[inline]
    fn not_below(self, lane: Lane) -> LaneSet {
        LaneSet::from_lane(&self, lane)
    }

    #[inline]
    fn above(self, lane: Lane) -> LaneSet {
        self - LaneSet::first(lane.index() + 1)
    }

    #[inline]
    fn has(self, lane: Lane) -> bool {
        self.contains(lane)
    }

    #[inline]
    fn but_lowest(mut self) -> LaneSet {
        LaneSet::lowest(&self).into_iter().for_each(|lane| self.remove(lane));
        self
    }
}
