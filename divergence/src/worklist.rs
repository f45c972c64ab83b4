//! Numbers that wait to be processed, the smallest first.

/// Words are 64 bits; a bit of a level tells whether a word of the level below has one.
const BITS: usize = 64;

/// A set of numbers below a bound that returns its least. It is a tree of words with 64 ways, so each operation takes
/// as many steps as the bound has digits to base 64: four for 16 million.
#[derive(Debug)]
pub(crate) struct Worklist {
    /// From the numbers up to a single word.
    levels: Vec<Vec<u64>>,
}

impl Worklist {
    pub(crate) fn new(bound: usize) -> Worklist {
        let mut levels = vec![vec![0; bound.div_ceil(BITS).max(1)]];
        while levels.last().is_some_and(|level| level.len() > 1) {
            let words = levels.last().map_or(1, |level| level.len().div_ceil(BITS));
            levels.push(vec![0; words]);
        }
        Worklist { levels }
    }

    pub(crate) fn insert(&mut self, number: usize) {
        let mut at = number;
        for level in &mut self.levels {
            let word = &mut level[at / BITS];
            let was = *word;
            *word |= 1 << (at % BITS);
            if was != 0 {
                break;
            }
            at /= BITS;
        }
    }

    /// Takes the least.
    pub(crate) fn pop(&mut self) -> Option<usize> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = level[at];
            if word == 0 {
                return None;
            }
            at = at * BITS + word.trailing_zeros() as usize;
        }
        let mut done = at;
        for level in &mut self.levels {
            let word = &mut level[done / BITS];
            *word &= !(1 << (done % BITS));
            if *word != 0 {
                break;
            }
            done /= BITS;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn gives_the_least_as_a_sorted_set_does() {
        let (mut list, mut set) = (Worklist::new(300_000), BTreeSet::new());
        let mut state = 1u64;
        for step in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (state >> 33) as usize % if step % 2 == 0 { 300_000 } else { 70 };
            if state >> 63 == 0 {
                list.insert(number);
                set.insert(number);
            } else {
                assert_eq!(list.pop(), set.pop_first());
            }
        }
        while let Some(number) = set.pop_first() {
            assert_eq!(list.pop(), Some(number));
        }
        assert_eq!((list.pop(), Worklist::new(0).pop()), (None, None));
    }
}
