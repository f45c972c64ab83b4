//! Lanes of a warp, and sets of them.

use std::fmt;

/// A thread's seat in its warp, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub u8);

impl Lane {
    /// The seat as an index.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The most lanes a warp may have.
pub const MAX_LANES: usize = 256;

const WORDS: usize = MAX_LANES / 64;

/// A set of what this is for each word: all words at once, written out, which is fast without optimisation, too.
// A word written alone would have to reach memory before the set can be read whole again, which costs more than the
// three words that don't change.
macro_rules! of_words {
    ($word:ident => $value:expr) => {
        LaneSet([
            {
                let $word = 0;
                $value
            },
            {
                let $word = 1;
                $value
            },
            {
                let $word = 2;
                $value
            },
            {
                let $word = 3;
                $value
            },
        ])
    };
}

/// A set of lanes of one warp: an active mask. Lane 0 is bit 0 of word 0.
#[derive(Clone, Copy, Eq, Default)]
pub struct LaneSet([u64; WORDS]);

impl PartialEq for LaneSet {
    // A comparison of arrays would have both in memory first.
    #[inline]
    fn eq(&self, other: &LaneSet) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) == 0
    }
}

impl LaneSet {
    /// The set without lanes.
    pub const EMPTY: LaneSet = LaneSet([0; WORDS]);

    /// The set of one lane.
    #[inline]
    #[must_use]
    pub fn only(lane: Lane) -> LaneSet {
        of_words!(word => u64::from(word == lane.index() / 64) << (lane.index() % 64))
    }

    /// Lanes 0 to `count` - 1.
    #[inline]
    #[must_use]
    pub fn first(count: usize) -> LaneSet {
        of_words!(word => match count.saturating_sub(word * 64) {
            here @ 0..64 => (1 << here) - 1,
            _ => u64::MAX,
        })
    }

    /// Adds a lane.
    #[inline]
    pub fn insert(&mut self, lane: Lane) {
        *self = *self | LaneSet::only(lane);
    }

    /// Takes a lane out.
    #[inline]
    pub fn remove(&mut self, lane: Lane) {
        *self = *self - LaneSet::only(lane);
    }

    /// Whether the lane is in it.
    #[inline]
    #[must_use]
    pub fn contains(&self, lane: Lane) -> bool {
        self.0[lane.index() / 64] >> (lane.index() % 64) & 1 == 1
    }

    /// Whether no lane is in it.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let [a, b, c, d] = self.0;
        a | b | c | d == 0
    }

    /// How many lanes are in it.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        // Most warps have at most 64 lanes, and counting takes a dozen operations a word where processors don't count.
        let [low, high @ ..] = self.0;
        let of_high = if high == [0; WORDS - 1] { 0 } else { high.iter().map(|w| w.count_ones()).sum() };
        (low.count_ones() + of_high) as usize
    }

    /// The lowest lane in it.
    #[inline]
    #[must_use]
    pub fn lowest(&self) -> Option<Lane> {
        let word = self.0.iter().position(|w| *w != 0)?;
        Some(Lane((word * 64) as u8 + self.0[word].trailing_zeros() as u8))
    }

    /// The highest lane in it.
    #[inline]
    #[must_use]
    pub fn highest(&self) -> Option<Lane> {
        let word = self.0.iter().rposition(|w| *w != 0)?;
        Some(Lane((word * 64) as u8 + 63 - self.0[word].leading_zeros() as u8))
    }

    /// Whether every lane of `self` is in `other`.
    #[inline]
    #[must_use]
    pub fn is_subset(&self, other: &LaneSet) -> bool {
        (*self - *other).is_empty()
    }

    /// Whether the two have no lane in common.
    #[inline]
    #[must_use]
    pub fn is_disjoint(&self, other: &LaneSet) -> bool {
        (*self & *other).is_empty()
    }

    /// The lanes of this set with this number or a higher one.
    #[inline]
    #[must_use]
    pub fn from_lane(&self, lane: Lane) -> LaneSet {
        *self - LaneSet::first(lane.index())
    }

    /// The mask as words of 64 lanes, as many as `lanes` lanes need.
    #[must_use]
    pub fn words(&self, lanes: usize) -> &[u64] {
        &self.0[..lanes.div_ceil(64).clamp(1, WORDS)]
    }

    /// The lanes in ascending order.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> Lanes {
        Lanes { words: self.0, word: 0, left: self.0[0] }
    }
}

/// The lanes of a set in ascending order.
pub struct Lanes {
    words: [u64; WORDS],
    word: usize,
    /// What is left of that word: apart from the others, so that it can stay in a register.
    left: u64,
}

impl Iterator for Lanes {
    type Item = Lane;

    #[inline]
    fn next(&mut self) -> Option<Lane> {
        while self.left == 0 {
            self.word += 1;
            self.left = *self.words.get(self.word)?;
        }
        let lowest = self.left.trailing_zeros();
        self.left &= self.left - 1;
        Some(Lane((self.word * 64) as u8 + lowest as u8))
    }
}

impl IntoIterator for LaneSet {
    type Item = Lane;
    type IntoIter = Lanes;

    fn into_iter(self) -> Lanes {
        self.iter()
    }
}

impl FromIterator<Lane> for LaneSet {
    fn from_iter<I: IntoIterator<Item = Lane>>(lanes: I) -> LaneSet {
        // The first word apart from the others, so that it can stay in a register.
        let (mut first, mut words) = (0, [0; WORDS]);
        for lane in lanes {
            let bit = 1 << (lane.index() % 64);
            match lane.index() / 64 {
                0 => first |= bit,
                word => words[word] |= bit,
            }
        }
        words[0] = first;
        LaneSet(words)
    }
}

macro_rules! set_operation {
    ($trait:ident, $method:ident, $doc:literal, |$a:ident, $b:ident| $operation:expr) => {
        impl std::ops::$trait for LaneSet {
            type Output = LaneSet;

            #[doc = $doc]
            #[inline]
            fn $method(self, other: LaneSet) -> LaneSet {
                of_words!(word => {
                    let ($a, $b) = (self.0[word], other.0[word]);
                    $operation
                })
            }
        }
    };
}

set_operation!(BitAnd, bitand, "The lanes in both.", |a, b| a & b);
set_operation!(BitOr, bitor, "The lanes in either.", |a, b| a | b);
set_operation!(Sub, sub, "The lanes in the first that are not in the second.", |a, b| a & !b);

impl fmt::Debug for LaneSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|l| l.0)).finish()
    }
}

impl fmt::Display for LaneSet {
    /// Lane numbers with commas, runs as `a-b`: `0,3-5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes: Vec<u8> = self.iter().map(|l| l.0).collect();
        let mut i = 0;
        while i < lanes.len() {
            let first = i;
            while i + 1 < lanes.len() && lanes[i + 1] == lanes[i] + 1 {
                i += 1;
            }
            let comma = if first == 0 { "" } else { "," };
            match i - first {
                0 => write!(f, "{comma}{}", lanes[first])?,
                _ => write!(f, "{comma}{}-{}", lanes[first], lanes[i])?,
            }
            i += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(lanes: &[u8]) -> LaneSet {
        lanes.iter().map(|l| Lane(*l)).collect()
    }

    #[test]
    fn lanes_come_back_in_order_across_words() {
        let lanes = [0, 3, 63, 64, 127, 200, 255];
        assert_eq!(set(&lanes).iter().map(|l| l.0).collect::<Vec<_>>(), lanes);
        assert_eq!(set(&lanes).len(), lanes.len());
        assert_eq!(set(&[200, 255]).lowest(), Some(Lane(200)));
        assert_eq!(LaneSet::EMPTY.lowest(), None);
    }

    #[test]
    fn sets_are_shown_as_runs() {
        assert_eq!(set(&[0, 3, 4, 5, 9]).to_string(), "0,3-5,9");
        assert_eq!(set(&[1, 2]).to_string(), "1-2");
    }

    #[test]
    fn from_lane_keeps_the_lane_itself() {
        assert_eq!(set(&[0, 3, 70]).from_lane(Lane(3)), set(&[3, 70]));
        assert_eq!(LaneSet::first(66).len(), 66);
    }

    #[test]
    fn difference_and_union_are_by_lane() {
        assert_eq!(set(&[1, 2, 99]) - set(&[2]), set(&[1, 99]));
        assert_eq!(set(&[1]) | set(&[99]), set(&[1, 99]));
        assert!(set(&[1]).is_disjoint(&set(&[2])));
        assert!(set(&[1]).is_subset(&set(&[1, 2])));
    }
}
