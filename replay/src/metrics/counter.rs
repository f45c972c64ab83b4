//! Counts of what was fetched, by circumstances: one look into a small table where the same is fetched again and again,
//! as in loops.

use heuristics::{Program, SegmentId};
use rustc_hash::FxHashMap;

use super::Step;

/// Instructions of one segment that were fetched in one step: the segment, the first of them, and the one after the
/// last.
pub(super) type Stretch = (SegmentId, u32, u32);

/// Numbers of stretches: of whole segments their own.
#[derive(Default)]
pub(super) struct Stretches {
    parts: FxHashMap<Stretch, u32>,
    by_number: Vec<Stretch>,
}

impl Stretches {
    /// Set in the numbers of parts of segments.
    const PART: u32 = 1 << 31;

    /// The number of what a step fetches.
    pub(super) fn number(&mut self, step: &Step) -> u32 {
        let (segment, first) = step.place();
        let count = step.instructions.len() as u32;
        if count == step.standing.program.segments[segment].len() as u32 {
            return segment.0;
        }
        let stretch = (segment, first, first + count);
        *self.parts.entry(stretch).or_insert_with(|| {
            self.by_number.push(stretch);
            (self.by_number.len() - 1) as u32 | Stretches::PART
        })
    }

    /// The stretch of a number.
    pub(super) fn of(&self, number: u32, program: &Program) -> Stretch {
        if number & Stretches::PART != 0 {
            return self.by_number[(number & !Stretches::PART) as usize];
        }
        (SegmentId(number), 0, program.segments[SegmentId(number)].len() as u32)
    }
}

/// A count that may be added to soon.
#[derive(Clone, Copy, Default)]
struct Recent {
    /// Number and circumstances; meaningless where the count is 0.
    key: u64,
    count: u64,
}

/// Counts by circumstances and by the number of what was fetched.
pub(super) struct Counter {
    /// A power of two.
    recent: Vec<Recent>,
    rest: FxHashMap<u64, u64>,
}

impl Default for Counter {
    fn default() -> Counter {
        Counter { recent: vec![Recent::default(); Counter::FEWEST], rest: FxHashMap::default() }
    }
}

impl Counter {
    /// As many recent counts are kept at first, and at most: 2 and 128 KiB.
    const FEWEST: usize = 1 << 7;
    const MOST: usize = 1 << 13;

    /// Counts `times` more.
    #[inline]
    pub(super) fn add(&mut self, circumstances: u32, number: u32, times: u64) {
        let key = u64::from(circumstances) << 32 | u64::from(number);
        let at = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - self.recent.len().trailing_zeros());
        let recent = &mut self.recent[at as usize];
        if recent.key == key {
            recent.count += times;
            return;
        }
        let left = std::mem::replace(recent, Recent { key, count: times });
        if left.count > 0 {
            *self.rest.entry(left.key).or_default() += left.count;
            if self.rest.len() > self.recent.len() && self.recent.len() < Counter::MOST {
                self.grow();
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let grown = vec![Recent::default(); self.recent.len() * 2];
        for left in std::mem::replace(&mut self.recent, grown) {
            if left.count > 0 {
                *self.rest.entry(left.key).or_default() += left.count;
            }
        }
    }

    /// How many counts there are at least; no more than a small number are not in it.
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    /// Takes all counts out: circumstances, number, count, in no order, some of them in two parts.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let recent = self.recent.iter_mut().map(std::mem::take).filter(|recent| recent.count > 0);
        let all = recent.map(|recent| (recent.key, recent.count)).chain(self.rest.drain());
        all.map(|(key, count)| ((key >> 32) as u32, key as u32, count))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn counts_that_give_way_to_others_are_not_lost() {
        let (mut counter, mut by_hand) = (Counter::default(), BTreeMap::new());
        for step in 0..100_000_u64 {
            // More pairs than the small table holds, the number 0 in the circumstances 0 among them.
            let (circumstances, number) = ((step % 7) as u32, (step * step % 9001) as u32);
            counter.add(circumstances, number, step % 3);
            *by_hand.entry((circumstances, number)).or_insert(0) += step % 3;
        }
        assert!(counter.recent.len() == Counter::MOST && counter.len() > Counter::MOST);
        let mut all = BTreeMap::new();
        counter.drain().for_each(|(circumstances, number, n)| *all.entry((circumstances, number)).or_insert(0) += n);
        by_hand.retain(|_, count| *count > 0);
        assert_eq!(all, by_hand);
        assert_eq!(counter.drain().count(), 0);
    }
}
