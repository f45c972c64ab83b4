//! What a thread does with words that may be locks.

use machine::Register;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, Pc};

use super::super::values::{Found, History, Place};
use super::acts::{Act, Acts, Does, Word, does};
use super::{barriers, queues, tickets};

/// Words of a thread that are looked at.
const MOST_WORDS: usize = 1 << 14;

/// What a thread does with a word.
#[derive(Clone, Debug, Default)]
pub(super) struct Use {
    pub(super) size: u16,
    pub(super) at: Option<(Register, i64)>,
    pub(super) has: bool,
    /// What may have taken it, if it is not sure that the thread has it.
    pub(super) unsure: Option<Pc>,
    /// How often it took the word alone, as a share, gave it back, and gave it without having it.
    pub(super) takes: u32,
    pub(super) may_take: u32,
    pub(super) gives: u32,
    pub(super) strays: u32,
    /// Stores since it was taken last, by unknown addresses, each with how often it was run.
    pub(super) stores: Vec<(Pc, u32)>,
    /// Of them, those by the register and distance by which it was taken.
    pub(super) alike: Vec<Pc>,
    /// Those that were run once each time that the word was taken; none before there were any.
    pub(super) once: Option<Vec<Pc>>,
}

/// How often a thread looks by which way it came to an instruction; from then on it does what it did.
const MOST_TRIES: u32 = 512;

/// How many different stores are looked at while a word is taken.
const MOST_STORES: usize = 16;

impl Use {
    /// The thread tries to take it; what was taken for a try and was none, as the thread had nothing to give.
    fn take(&mut self, act: &Act) -> Option<Pc> {
        let is_sure = act.does == Does::Takes;
        // Stores since it tried tell that it had the word.
        if self.has && !self.end() {
            let refuted = self.unsure.take_if(|_| is_sure);
            if refuted.is_some() {
                (self.may_take, self.takes) = (self.may_take - 1, self.takes + 1);
            }
            return refuted;
        }
        (self.has, self.size, self.at, self.unsure) = (true, act.size, act.at, (!is_sure).then_some(act.pc));
        *if is_sure { &mut self.takes } else { &mut self.may_take } += 1;
        None
    }

    fn give(&mut self) {
        (self.has, self.gives) = (false, self.gives + 1);
        self.stores.clear();
    }

    /// The thread ends, or takes the word again: whether a store may have given it.
    fn end(&mut self) -> bool {
        if !self.has || self.stores.is_empty() {
            return false;
        }
        let stores = std::mem::take(&mut self.stores);
        let once = stores.iter().filter(|(_, times)| *times == 1).map(|(pc, _)| *pc);
        self.once = Some(match self.once.take() {
            None => once.collect(),
            Some(before) => once.filter(|pc| before.contains(pc)).collect(),
        });
        self.give();
        true
    }

    /// Whether such a store may give it, and none such did since it was taken.
    fn awaits(&self, act: &Act) -> bool {
        self.has && self.size == act.size && self.stores.iter().all(|(pc, _)| *pc != act.pc)
    }

    fn store(&mut self, act: &Act) {
        if self.at == act.at && !self.alike.contains(&act.pc) && self.alike.len() < MOST_STORES {
            self.alike.push(act.pc);
        }
        // The order is that of the last time.
        let times = self.stores.iter().position(|(pc, _)| *pc == act.pc).map_or(0, |at| self.stores.remove(at).1);
        if self.stores.len() < MOST_STORES {
            self.stores.push((act.pc, times + 1));
        }
    }
}

/// What a thread does with words that may be locks.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct Uses {
    pub(super) words: FxHashMap<u64, Use>,
    pub(super) places: FxHashMap<u64, FxHashSet<Pc>>,
    /// Words that it waited for in the kernel.
    pub(super) waited: FxHashSet<u64>,
    /// The words that it has.
    pub(super) has: Vec<u64>,
    /// What never took a word, though it looked so; or does now this and now that.
    pub(super) refuted: FxHashSet<Pc>,
    pub(super) tickets: tickets::Uses,
    pub(super) barriers: barriers::Uses,
    pub(super) queues: queues::Uses,
    pub(super) history: History,
    /// What instructions do whose code does not tell it.
    pub(super) resolved: FxHashMap<Pc, Option<Does>>,
    /// How often it was looked what an instruction does.
    pub(super) tries: FxHashMap<Pc, u32>,
    /// Stores that have written something else than 0.
    pub(super) never: FxHashSet<Pc>,
    /// Stores that have written 0 in a function for atomics.
    pub(super) of_atomics: FxHashSet<Pc>,
}

impl Uses {
    /// The thread runs so many instructions of a block that may act on locks, with these addresses.
    pub fn block(&mut self, acts: &Acts, (block, executed): (BlockId, u32), addresses: &[u64]) {
        let executed = executed as usize;
        self.tickets.block(acts, &self.history, (block, executed), addresses);
        self.queues.block(acts, &self.history, (block, executed), addresses);
        for act in acts.by_block[block.index()].iter().filter(|act| act.number < executed) {
            let mut act = *act;
            if act.is_open && !self.resolve(acts, block, &mut act) {
                continue;
            }
            let act = &act;
            let word = match act.word {
                Word::At(word) => word,
                // The block was left before.
                Word::Recorded(index) => match addresses.get(index) {
                    Some(word) => *word,
                    None => return,
                },
                Word::Unknown => {
                    // Of locks in each other the one that was taken by such an address, or the inner one.
                    let awaits = |word: &&u64| self.words.get(*word).is_some_and(|used| used.awaits(act));
                    let is_alike = |word: &&u64| awaits(word) && self.words[*word].at == act.at;
                    let inner_first = || self.has.iter().rev();
                    let word = inner_first().find(is_alike).or_else(|| inner_first().find(awaits)).or(self.has.last());
                    if let Some(used) = word.and_then(|word| self.words.get_mut(word)) {
                        used.store(act);
                    }
                    continue;
                }
            };
            let takes = matches!(act.does, Does::Takes | Does::MayTake);
            if takes && self.refuted.contains(&act.pc) {
                continue;
            }
            if takes && self.words.len() < MOST_WORDS {
                self.words.entry(word).or_default();
            }
            let Some(used) = self.words.get_mut(&word) else { continue };
            match act.does {
                Does::Takes | Does::MayTake => {
                    if !used.has {
                        self.has.push(word);
                    }
                    self.refuted.extend(used.take(act));
                }
                Does::Gives | Does::MayGive if used.has => {
                    used.give();
                    self.has.retain(|has| *has != word);
                }
                Does::Gives => used.strays += 1,
                Does::MayGive | Does::Draws | Does::Arrives => continue,
            }
            self.places.entry(word).or_default().insert(act.pc);
        }
    }

    /// The thread ran so many instructions of a block, with these addresses, if they are of the program's own code.
    pub fn ran(&mut self, acts: &Acts, (block, executed): (BlockId, u32), addresses: Option<&[u64]>) {
        self.history.ran(block, executed);
        self.barriers.ran(&acts.barriers, block, executed as usize, addresses);
    }

    /// The thread goes on elsewhere, as in a handler of a signal.
    pub fn lose_way(&mut self) {
        self.history.clear();
        self.barriers.goes_away();
    }

    /// Finds what an instruction does by the way that led to it, if it does anything.
    fn resolve(&mut self, acts: &Acts, block: BlockId, act: &mut Act) -> bool {
        let is_store = matches!(act.word, Word::Unknown | Word::At(_));
        if is_store && (self.has.is_empty() || self.never.contains(&act.pc)) || self.refuted.contains(&act.pc) {
            return false;
        }
        let tries = self.tries.entry(act.pc).or_default();
        *tries += 1;
        if *tries > MOST_TRIES {
            let does = self.resolved.get(&act.pc).copied().unwrap_or(Some(act.does));
            act.does = does.unwrap_or(act.does);
            return does.is_some();
        }
        let mut listing = acts.table.of_block(block).iter().flat_map(|segment| acts.table.listing(*segment).iter());
        let Some(one) = listing.nth(act.number).flatten() else { return false };
        let mut is_known = true;
        let constant = |register| {
            let known = self.history.found(acts.table, (block, act.number, 0), Place::Register(register));
            let constant = if let Found::Constant(constant) = known { Some(constant) } else { None };
            is_known &= constant.is_some();
            constant
        };
        if is_store {
            let put = one.register(1).map(|part| part.register).and_then(constant);
            if put != Some(0) {
                self.never.insert(act.pc);
            } else if acts.of_atomics.contains(&act.pc) {
                self.of_atomics.insert(act.pc);
            }
            return put == Some(0);
        }
        let now = does(one, constant);
        if is_known || now == Some(Does::Takes) {
            let before = *self.resolved.entry(act.pc).or_insert(now);
            if before != now {
                self.refuted.insert(act.pc);
                return false;
            }
        }
        match self.resolved.get(&act.pc).copied().unwrap_or(Some(act.does)) {
            Some(does) => act.does = does,
            None => return false,
        }
        true
    }

    /// The thread ends: where a store has always given a word, it does so at last.
    pub fn end(&mut self) {
        self.tickets.end();
        self.queues.end();
        for word in std::mem::take(&mut self.has) {
            let Some(used) = self.words.get_mut(&word) else { continue };
            if !used.end()
                && let Some(unsure) = used.unsure.filter(|_| used.has)
            {
                (used.has, used.may_take) = (false, used.may_take - 1);
                self.refuted.insert(unsure);
            }
            let of_atomics = |once: &'_ &Vec<Pc>| once.iter().rfind(|pc| self.of_atomics.contains(*pc)).copied();
            let alike = |once: &'_ &Vec<Pc>| once.iter().rfind(|pc| used.alike.contains(*pc)).copied();
            let once = used.once.as_ref();
            let sure = once.as_ref().and_then(of_atomics).or(once.as_ref().and_then(alike));
            if let Some(last) = sure.or(once.and_then(|once| once.last()).copied()) {
                self.places.entry(word).or_default().insert(last);
            }
        }
    }

    /// The thread waits for the word in the kernel.
    pub fn waits(&mut self, word: u64) {
        self.waited.insert(word);
    }

    /// The thread yields, or waits in the kernel, and not in a library.
    pub fn yields(&mut self) {
        self.barriers.waits();
    }
}
