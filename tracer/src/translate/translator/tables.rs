//! What is kept of translations, in the tables that change together. All of it is forgotten at once.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Path;
use crate::translate::addresses::{CachePc, ProgramPc};
use crate::translate::code::superblock::{Jump, Link, NO_JUMP, Trap};

/// What records stand for.
#[derive(Clone, Default)]
pub struct Paths {
    all: Vec<Path>,
    /// Those that are no whole superblock's, by what they are.
    partial: FxHashMap<Path, u32>,
}

impl Paths {
    /// Makes room for so many more.
    pub fn reserve(&mut self, more: usize) {
        self.all.reserve(more);
    }

    /// The number of the path that is added next.
    pub fn next(&self) -> u32 {
        self.all.len() as u32
    }

    /// The path of this number.
    pub fn get(&self, number: u32) -> Option<Path> {
        self.all.get(number as usize).copied()
    }

    /// Adds paths, whose numbers follow one another.
    pub fn add(&mut self, paths: impl Iterator<Item = Path>) {
        self.all.extend(paths);
    }

    /// The number of a path in whose middle a thread was found, and whether it is new.
    pub fn partial(&mut self, path: Path) -> (u32, bool) {
        let next = self.next();
        let number = *self.partial.entry(path).or_insert(next);
        if number == next {
            self.all.push(path);
        }
        (number, number == next)
    }
}

/// Where superblocks begin in the program.
#[derive(Clone, Default)]
pub struct Heads {
    /// The superblock that is run from there.
    by_head: FxHashMap<ProgramPc, u32>,
    /// Those that lookups have reached.
    looked_up: FxHashSet<ProgramPc>,
    /// Superblocks that expect to be entered again by a return or an indirect jump, by the place of the address in the
    /// lookup tables.
    expecting: FxHashMap<u64, Vec<u32>>,
}

impl Heads {
    /// Makes room for so many more.
    pub fn reserve(&mut self, more: usize) {
        self.by_head.reserve(more);
    }

    /// The superblock that is run from there, if it is translated.
    pub fn get(&self, head: ProgramPc) -> Option<u32> {
        self.by_head.get(&head).copied()
    }

    /// From now on this one is.
    pub fn set(&mut self, head: ProgramPc, number: u32) {
        self.by_head.insert(head, number);
    }

    /// None is any more. Returns the one that was.
    pub fn remove(&mut self, head: ProgramPc) -> Option<u32> {
        self.by_head.remove(&head)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_head.len()
    }

    /// A lookup has come there, and will again.
    pub fn look_up(&mut self, head: ProgramPc) {
        self.looked_up.insert(head);
    }

    /// Whether one has.
    pub fn is_looked_up(&self, head: ProgramPc) -> bool {
        self.looked_up.contains(&head)
    }

    /// A superblock expects that control goes to an address with this place in the lookup tables.
    pub fn expect(&mut self, index: u64, number: u32) {
        self.expecting.entry(index).or_default().push(number);
    }

    /// The superblocks that do, which are forgotten.
    pub fn take_expecting(&mut self, index: u64) -> Vec<u32> {
        self.expecting.remove(&index).unwrap_or_default()
    }
}

/// Superblocks by the place of their heads in the lookup tables. It is kept up only when it is asked: most programs ask
/// seldom, and some thousands of times with hundreds of thousands of superblocks.
#[derive(Clone, Default)]
pub struct Sharing {
    /// The last superblock with a place.
    last: FxHashMap<u64, u32>,
    /// By number of each: the one with the same place before it, or [`NO_JUMP`].
    before: Vec<u32>,
}

impl Sharing {
    /// All superblocks whose heads have this place, of those that there are; `place` tells it by number.
    pub fn at(&mut self, wanted: u64, superblocks: usize, place: impl Fn(u32) -> u64) -> impl Iterator<Item = u32> {
        for number in self.before.len() as u32..superblocks as u32 {
            self.before.push(self.last.insert(place(number), number).unwrap_or(NO_JUMP));
        }
        let before = |number: &u32| Some(self.before[*number as usize]).filter(|&number| number != NO_JUMP);
        std::iter::successors(self.last.get(&wanted).copied(), before)
    }
}

/// Jumps to code that is translated, or will be.
#[derive(Clone, Default)]
pub struct Jumps {
    all: Vec<Jump>,
    /// The last one to code at an address.
    last: FxHashMap<ProgramPc, u32>,
}

impl Jumps {
    /// Makes room for so many more.
    pub fn reserve(&mut self, more: usize) {
        self.all.reserve(more);
    }

    /// The number of the jump that is added next.
    pub fn next(&self) -> u32 {
        self.all.len() as u32
    }

    /// The jump of this number.
    pub fn get(&self, number: u32) -> Option<Jump> {
        self.all.get(number as usize).copied()
    }

    /// Adds one.
    pub fn add(&mut self, Link { site, target, trap }: Link) {
        let before = self.last.insert(target, self.next()).unwrap_or(NO_JUMP);
        self.all.push(Jump { site, target, trap, before });
    }

    /// Those to code at an address.
    pub fn to(&self, target: ProgramPc) -> impl Iterator<Item = Jump> {
        let last = self.last.get(&target).and_then(|&number| self.get(number));
        std::iter::successors(last, |jump| self.get(jump.before))
    }
}

/// What lies where in the caches.
#[derive(Clone, Default)]
pub struct Places {
    traps: FxHashMap<CachePc, Trap>,
    /// How many traps that last are among them.
    lasting: usize,
    /// Which superblock's code lies at an address: by start, with the end.
    ranges: BTreeMap<CachePc, (CachePc, u32)>,
}

impl Places {
    /// No code but these traps, which last.
    pub fn with(lasting: &[(CachePc, Trap)]) -> Places {
        let mut places = Places::default();
        places.keep_up(lasting);
        places
    }

    /// These traps last now; none of them is given up.
    pub fn keep_up(&mut self, lasting: &[(CachePc, Trap)]) {
        if lasting.len() != self.lasting {
            self.lasting = lasting.len();
            self.traps.extend(lasting.iter().copied());
        }
    }

    /// Adds traps.
    pub fn add_traps(&mut self, traps: impl Iterator<Item = (CachePc, Trap)>) {
        self.traps.extend(traps);
    }

    /// The trap at this address, except for those of jumps.
    pub fn trap(&self, address: CachePc) -> Option<Trap> {
        self.traps.get(&address).copied()
    }

    /// A superblock's code lies from `start` up to `end`.
    pub fn add(&mut self, start: CachePc, end: CachePc, number: u32) {
        self.ranges.insert(start, (end, number));
    }

    /// The superblock whose code lies there.
    pub fn superblock(&self, address: CachePc) -> Option<u32> {
        let (_, &(end, number)) = self.ranges.range(..=address).next_back()?;
        (address < end).then_some(number)
    }
}

/// From which pages of the program superblocks were translated.
#[derive(Clone, Default)]
pub struct Pages {
    superblocks: FxHashMap<u64, Vec<u32>>,
    /// Superblocks whose code changes, and in which threads may still be.
    pub changed: FxHashSet<u32>,
}

impl Pages {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.superblocks.len()
    }

    /// Their addresses.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.superblocks.keys().copied()
    }

    /// Whether there is code from this one.
    pub fn contains(&self, page: u64) -> bool {
        self.superblocks.contains_key(&page)
    }

    /// A superblock was translated from this page.
    pub fn add(&mut self, page: u64, number: u32) {
        self.superblocks.entry(page).or_default().push(number);
    }

    /// The superblocks of a page.
    pub fn of(&self, page: u64) -> &[u32] {
        self.superblocks.get(&page).map_or(&[], Vec::as_slice)
    }

    /// They are given up, since the page changes; threads may still be in them.
    pub fn change(&mut self, page: u64) -> Vec<u32> {
        let numbers = self.superblocks.remove(&page).unwrap_or_default();
        self.changed.extend(&numbers);
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superblocks_that_share_a_place_are_found_also_when_they_came_later() {
        let mut sharing = Sharing::default();
        let places = [7, 8, 7, 9, 7];
        let mut at = |wanted, count| -> Vec<u32> {
            let mut found: Vec<u32> = sharing.at(wanted, count, |number| places[number as usize]).collect();
            found.sort_unstable();
            found
        };
        assert!(at(7, 0).is_empty());
        assert_eq!(at(7, 2), vec![0u32]);
        assert_eq!((at(7, 5), at(9, 5), at(8, 5), at(6, 5)), (vec![0, 2, 4], vec![3], vec![1], vec![]));
    }
}
