//! What instructions may do, by the blocks in which they stand; and what a thread does just once each time.

use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Block, BlockId, Pc};

/// An instruction that may do something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act<D> {
    pub pc: Pc,
    /// Which of the block's instructions it is.
    pub number: usize,
    pub does: D,
    /// Which of the block's recorded addresses is its own, if one is.
    pub recorded: Option<usize>,
}

/// All of one kind, in the order of blocks and of their instructions.
#[derive(Debug)]
pub(super) struct ByBlock<D> {
    pub acts: Vec<Act<D>>,
    /// By block: where its own end.
    ends: Vec<u32>,
}

impl<D> Default for ByBlock<D> {
    fn default() -> ByBlock<D> {
        ByBlock { acts: Vec::new(), ends: Vec::new() }
    }
}

impl<D> ByBlock<D> {
    /// Adds those of the next block.
    pub fn push(&mut self, block: &Block, does: impl Fn(usize) -> Option<D>) {
        let mut recorded = 0;
        for (number, instruction) in block.instructions.iter().enumerate() {
            let count = usize::from(instruction.memory);
            let own = (count > 0).then_some(recorded);
            recorded += count;
            let act = does(number).map(|does| Act { pc: instruction.pc, number, does, recorded: own });
            self.acts.extend(act);
        }
        self.ends.push(self.acts.len() as u32);
    }

    pub fn retain(&mut self, keep: impl Fn(&D) -> bool) {
        let (mut begin, mut kept) = (0, 0);
        for end in &mut self.ends {
            let own = &self.acts[begin as usize..*end as usize];
            kept += own.iter().filter(|act| keep(&act.does)).count() as u32;
            (begin, *end) = (*end, kept);
        }
        self.acts.retain(|act| keep(&act.does));
    }

    /// Keeps them only if some instruction does what the others follow from.
    pub fn keep_if_any(&mut self, is_one: impl Fn(&D) -> bool) {
        if !self.acts.iter().any(|act| is_one(&act.does)) {
            *self = ByBlock::default();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.acts.is_empty()
    }

    #[inline]
    pub fn has(&self, block: BlockId) -> bool {
        !self.of(block).is_empty()
    }

    #[inline]
    pub fn of(&self, block: BlockId) -> &[Act<D>] {
        let Some(end) = self.ends.get(block.index()) else { return &[] };
        let begin = block.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.acts[begin as usize..*end as usize]
    }

    /// Those that are run where a thread runs so many instructions of a block, with the addresses that were recorded.
    pub fn ran<'a>(
        &'a self,
        (block, executed): (BlockId, usize),
        addresses: &'a [u64],
    ) -> impl Iterator<Item = (&'a Act<D>, Option<u64>)> {
        let acts = self.of(block).iter().take_while(move |act| act.number < executed);
        acts.map_while(|act| match act.recorded {
            // The block was left before.
            Some(at) => Some((act, Some(*addresses.get(at)?))),
            None => Some((act, None)),
        })
    }
}

/// How many different things are looked at that are done between two times.
const MOST: usize = 16;

/// What was done since a thread took something, the last one last, and how often.
#[derive(Clone, Debug)]
pub(super) struct Since<T>(pub Vec<(T, u32)>);

impl<T> Default for Since<T> {
    fn default() -> Since<T> {
        Since(Vec::new())
    }
}

impl<T: Copy + PartialEq> Since<T> {
    pub fn does(&mut self, what: T) {
        let at = self.0.iter().position(|(known, _)| *known == what);
        let times = at.map_or(0, |at| self.0.remove(at).1);
        if self.0.len() < MOST {
            self.0.push((what, times + 1));
        }
    }

    /// Begins anew: what was done just once, of what was so all times before.
    pub fn once(&mut self, before: Option<&Vec<T>>) -> Vec<T> {
        let once = self.0.drain(..).filter(|(_, times)| *times == 1).map(|(what, _)| what);
        once.filter(|what| before.is_none_or(|before| before.contains(what))).collect()
    }
}

/// The words for which all threads that use them say so, at least two; each with whether one does.
pub(super) fn all_agree(uses: impl Iterator<Item = (u64, bool)>) -> FxHashSet<u64> {
    let mut of_word: FxHashMap<u64, (bool, usize)> = FxHashMap::default();
    for (word, is_one) in uses {
        let (all, threads) = of_word.entry(word).or_insert((true, 0));
        (*all, *threads) = (*all && is_one, *threads + 1);
    }
    of_word.into_iter().filter(|(_, (all, threads))| *all && *threads > 1).map(|(word, _)| word).collect()
}

#[cfg(test)]
mod tests {
    use trace_format::{Instruction, Kind, SpEffect};

    use super::*;

    #[test]
    fn acts_are_found_by_block_with_their_addresses() {
        let mut acts = ByBlock::default();
        for memory in [&[1, 0, 2][..], &[0], &[1]] {
            let one = |(i, memory): (usize, &u8)| Instruction {
                pc: Pc(i as u64),
                len: 1,
                kind: Kind::Plain,
                sp: SpEffect::Add(0),
                memory: *memory,
            };
            let instructions = memory.iter().enumerate().map(one).collect();
            acts.push(&Block { instructions, ..Block::default() }, |number| (number != 1).then_some(number));
        }
        let ran = |block, executed, addresses: &[u64]| -> Vec<(usize, Option<u64>)> {
            acts.ran((BlockId(block), executed), addresses).map(|(act, address)| (act.number, address)).collect()
        };
        assert_eq!(ran(0, 3, &[64, 72, 80]), [(0, Some(64)), (2, Some(72))]);
        assert_eq!(ran(0, 2, &[64]), [(0, Some(64))]);
        assert_eq!(ran(0, 3, &[64]), [(0, Some(64))], "the block was left before");
        assert_eq!(ran(1, 1, &[]), [(0, None)]);
        acts.retain(|number| *number == 2);
        assert!(!acts.has(BlockId(1)) && !acts.has(BlockId(2)) && acts.of(BlockId(0))[0].number == 2);
        acts.keep_if_any(|number| *number == 0);
        assert!(acts.is_empty() && !acts.has(BlockId(0)));
    }

    #[test]
    fn what_is_done_once_each_time_is_known_in_the_order_of_the_last() {
        let mut since = Since::default();
        [1, 2, 3, 2].into_iter().for_each(|what| since.does(what));
        let first = since.once(None);
        assert_eq!(first, [1, 3]);
        [3, 4, 1].into_iter().for_each(|what| since.does(what));
        assert_eq!(since.once(Some(&first)), [3, 1]);
    }
}
