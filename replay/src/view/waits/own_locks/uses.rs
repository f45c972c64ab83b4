//! What a thread does with words that may be locks.

use machine::Register;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, Pc};

use super::super::values::{Found, History, Place};
use super::acts::{Acts, Does, OnWord, does};
use super::by_block::{Act, Since};
use super::{barriers, queues, tickets, undone, unseen};

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
    /// What took it last.
    pub(super) by: Option<Pc>,
    /// How often it took the word alone, as a share, gave it back, and gave it without having it.
    pub(super) takes: u32,
    pub(super) may_take: u32,
    pub(super) gives: u32,
    /// How often it gave it back as nobody does who has a share.
    pub(super) sure: u32,
    pub(super) strays: u32,
    /// Stores since it was taken last, by unknown addresses, each with how often it was run.
    pub(super) stores: Since<Pc>,
    /// Of them, those by the register and distance by which it was taken, or in functions for atomics.
    pub(super) alike: Vec<Pc>,
    /// Of those, the ones in the function that took it: elsewhere a register holds something else.
    near: Vec<Pc>,
    /// The function in which it was taken last.
    function: Option<Pc>,
    /// By what took it: those that were run once each time.
    once: FxHashMap<Pc, Vec<Pc>>,
    /// Stores that alone were alike since it was taken, and were run once; none if there was none of these some time.
    ways: Option<Vec<Pc>>,
}

/// How often a thread looks by which way it came to an instruction; from then on it does what it did.
const MOST_TRIES: u32 = 512;

/// How many different stores by one register and distance are looked at.
const MOST_ALIKE: usize = 16;

impl Use {
    /// The thread tries to take it; what was taken for a try and was none, as the thread had nothing to give.
    fn take(&mut self, pc: Pc, act: &OnWord) -> Option<Pc> {
        let is_sure = act.does == Does::Takes;
        // Stores since it tried tell that it had the word.
        if self.has && !self.end() {
            let refuted = self.unsure.take_if(|_| is_sure);
            if refuted.is_some() {
                (self.may_take, self.takes) = (self.may_take - 1, self.takes + 1);
            }
            return refuted;
        }
        (self.has, self.size, self.at, self.by) = (true, act.size, act.at, Some(pc));
        self.function = act.function;
        self.unsure = (!is_sure).then_some(pc);
        *if is_sure { &mut self.takes } else { &mut self.may_take } += 1;
        None
    }

    fn give(&mut self) {
        (self.has, self.gives) = (false, self.gives + 1);
        self.stores.0.clear();
    }

    /// The thread ends, or takes the word again: whether a store may have given it.
    fn end(&mut self) -> bool {
        let Some(by) = self.by.filter(|_| self.has && !self.stores.0.is_empty()) else { return false };
        let of = |those: &[Pc]| -> Vec<(Pc, u32)> {
            self.stores.0.iter().filter(|(pc, _)| those.contains(pc)).copied().collect()
        };
        let near = of(&self.near);
        let alike = if near.is_empty() { of(&self.alike) } else { near };
        let ways = if self.once.is_empty() { Some(Vec::new()) } else { self.ways.take() };
        if let (Some(mut ways), [(pc, 1)]) = (ways, &alike[..]) {
            ways.retain(|way| way != pc);
            ways.push(*pc);
            self.ways = Some(ways);
        }
        let once = self.stores.once(self.once.get(&by));
        self.once.insert(by, once);
        self.give();
        true
    }

    /// The stores that gave it, each time one, if any did: one for what took it, or alone alike. Those that may are
    /// asked for.
    pub(super) fn giving(&self, may: impl Fn(Pc) -> bool, is_likely: impl Fn(Pc) -> bool) -> Option<Vec<Pc>> {
        let last = |once: &Vec<Pc>| {
            let latest = |is_one: &dyn Fn(Pc) -> bool| once.iter().rfind(|pc| may(**pc) && is_one(**pc)).copied();
            let of = |those: &[Pc]| latest(&|pc| those.contains(&pc));
            latest(&is_likely).or_else(|| of(&self.near)).or_else(|| of(&self.alike)).or_else(|| latest(&|_| true))
        };
        let of_takes: Option<Vec<Pc>> = self.once.values().map(last).collect();
        of_takes.or_else(|| self.ways.clone().filter(|ways| ways.iter().all(|pc| may(*pc))))
    }

    /// Whether such a store may give it, and none such did since it was taken.
    fn awaits(&self, act: &Act<OnWord>) -> bool {
        self.has && self.size == act.does.size && self.stores.0.iter().all(|(pc, _)| *pc != act.pc)
    }

    fn store(&mut self, act: &Act<OnWord>, is_of_atomics: bool) {
        if (is_of_atomics || self.at == act.does.at) && !self.alike.contains(&act.pc) && self.alike.len() < MOST_ALIKE {
            self.alike.push(act.pc);
            if self.function.is_some() && self.function == act.does.function {
                self.near.push(act.pc);
            }
        }
        self.stores.does(act.pc);
    }
}

/// What a thread puts into a word, and does not look at what was there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flag {
    /// Whether 0, and whether another number.
    pub(super) puts: [bool; 2],
    /// Whether the last was 0; numbers that are not known count as another.
    is_down: Option<bool>,
    /// How often it has put 0 behind another number, or another behind 0.
    changes: u32,
}

impl Flag {
    /// Whether the thread has put it up, down, and up again.
    pub(super) fn is_up_again(&self) -> bool {
        self.changes > 1
    }

    pub(super) fn put(&mut self, is_zero: bool, is_known: bool) {
        self.puts[usize::from(!is_zero)] |= is_known;
        self.changes += u32::from(self.is_down.is_some_and(|is_down| is_down != is_zero));
        self.is_down = Some(is_zero);
    }
}

/// What a thread does with words that may be locks.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct Uses {
    pub(super) words: FxHashMap<u64, Use>,
    pub(super) places: FxHashMap<u64, FxHashSet<Pc>>,
    /// Words in which `xchg` only puts something.
    pub(super) flags: FxHashMap<u64, Flag>,
    /// Words that it waited for in the kernel.
    pub(super) waited: FxHashSet<u64>,
    /// The words that it has.
    pub(super) has: Vec<u64>,
    /// The word that it gave last, by counting it down, if it has done nothing to another since.
    lowered: Option<u64>,
    /// What never took a word, though it looked so; or does now this and now that.
    pub(super) refuted: FxHashSet<Pc>,
    pub(super) tickets: tickets::Uses,
    pub(super) barriers: barriers::Uses,
    pub(super) queues: queues::Uses,
    pub(super) undone: undone::Uses,
    pub(super) unseen: unseen::Uses,
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
        self.undone.block(acts, (block, executed), addresses);
        self.unseen.block(acts, (block, executed), addresses);
        for (act, recorded) in acts.words.ran((block, executed), addresses) {
            let mut act = *act;
            if act.does.is_open && !self.resolve(acts, block, &mut act, recorded) {
                continue;
            }
            let Some(word) = (if act.does.is_store { act.does.place } else { recorded }) else {
                self.store(&act);
                continue;
            };
            let Act { pc, does: act, .. } = act;
            let takes = matches!(act.does, Does::Takes | Does::MayTake);
            if act.only_gives && !act.is_open && !act.is_store {
                self.put(word, Some(act.does));
            }
            if takes && (act.only_gives || self.refuted.contains(&pc)) {
                continue;
            }
            if takes && self.words.len() < MOST_WORDS {
                self.words.entry(word).or_default();
            }
            let Some(used) = self.words.get_mut(&word) else { continue };
            let was_lowered = self.lowered.take() == Some(word);
            match act.does {
                Does::Takes | Does::MayTake => {
                    // Taken again it is the inner one.
                    let again = used.has && !used.stores.0.is_empty();
                    if let Some(at) = again.then(|| self.has.iter().rposition(|has| *has == word)).flatten() {
                        self.has.remove(at);
                    }
                    if again || !used.has {
                        self.has.push(word);
                    }
                    self.refuted.extend(used.take(pc, &act));
                }
                Does::Gives | Does::MayGive if used.has => {
                    used.sure += u32::from(act.only_gives);
                    used.give();
                    self.has.retain(|has| *has != word);
                    self.lowered = (act.does == Does::MayGive).then_some(word);
                }
                // Others wait for it: what the count left of their sign goes.
                Does::Gives if was_lowered => continue,
                Does::Gives => used.strays += 1,
                Does::MayGive | Does::Draws | Does::Arrives => continue,
            }
            self.places.entry(word).or_default().insert(pc);
        }
    }

    /// The thread puts something into a word by `xchg`, as a lock is given or taken, and does not look at what was
    /// there; none: something unknown.
    fn put(&mut self, word: u64, does: Option<Does>) {
        let is_zero = match does {
            Some(Does::Gives) => true,
            Some(Does::Takes | Does::MayTake) | None => false,
            _ => return,
        };
        if self.flags.len() < MOST_WORDS {
            self.flags.entry(word).or_default().put(is_zero, does.is_some());
        }
    }

    /// The thread stores 0, or what may be 0, to an unknown address: of locks in each other to the one that was taken
    /// by such an address, or the inner one.
    fn store(&mut self, act: &Act<OnWord>) {
        let is_of_atomics = self.of_atomics.contains(&act.pc);
        let awaits = |word: &&u64| self.words.get(*word).is_some_and(|used| used.awaits(act));
        let is_alike = |word: &&u64| awaits(word) && self.words[*word].at == act.does.at;
        let inner_first = || self.has.iter().rev();
        let word = inner_first().find(is_alike).or_else(|| inner_first().find(awaits)).or(self.has.last());
        if let Some(used) = word.and_then(|word| self.words.get_mut(word)) {
            used.store(act, is_of_atomics);
        }
    }

    /// The thread ran so many instructions of a block, with these addresses, if they are of the program's own code.
    pub fn ran(&mut self, acts: &Acts, (block, executed): (BlockId, u32), addresses: Option<&[u64]>) {
        self.history.ran(block, executed);
        self.barriers.ran(acts, (block, executed as usize), addresses);
    }

    /// The thread goes on elsewhere, as in a handler of a signal.
    pub fn lose_way(&mut self) {
        self.history.clear();
        self.barriers.goes_away();
    }

    /// Finds what an instruction, of the word at this address, does by the way that led to it, if it does anything.
    fn resolve(&mut self, acts: &Acts, block: BlockId, act: &mut Act<OnWord>, word: Option<u64>) -> bool {
        let is_store = act.does.is_store;
        let is_refuted = self.refuted.contains(&act.pc);
        if is_store && (self.has.is_empty() || self.never.contains(&act.pc) || is_refuted) {
            return false;
        }
        let tries = self.tries.entry(act.pc).or_default();
        *tries += 1;
        if *tries > MOST_TRIES {
            let does = self.resolved.get(&act.pc).copied().unwrap_or(Some(act.does.does));
            act.does.does = does.unwrap_or(act.does.does);
            return does.is_some() && !is_refuted;
        }
        let Some(one) = acts.instruction(block, act.number) else { return false };
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
        if let Some((now, word)) = now.filter(|_| act.does.only_gives).zip(word) {
            self.put(word, is_known.then_some(now));
        }
        if is_refuted {
            return false;
        }
        if is_known || now == Some(Does::Takes) {
            let before = *self.resolved.entry(act.pc).or_insert(now);
            if before != now {
                self.refuted.insert(act.pc);
                return false;
            }
        }
        match self.resolved.get(&act.pc).copied().unwrap_or(Some(act.does.does)) {
            Some(does) => act.does.does = does,
            None => return false,
        }
        true
    }

    /// The thread ends: where a store has always given a word, it does so at last.
    pub fn end(&mut self) {
        self.tickets.end();
        self.queues.end();
        self.unseen.end();
        for word in std::mem::take(&mut self.has) {
            let Some(used) = self.words.get_mut(&word) else { continue };
            if !used.end()
                && let Some(unsure) = used.unsure.filter(|_| used.has)
            {
                (used.has, used.may_take) = (false, used.may_take - 1);
                self.refuted.insert(unsure);
            }
            let giving = self.words[&word].giving(|pc| !self.never.contains(&pc), |pc| self.of_atomics.contains(&pc));
            self.places.entry(word).or_default().extend(giving.into_iter().flatten());
        }
    }

    /// The words that it takes, and how often.
    pub fn takes(&self) -> impl Iterator<Item = (u64, u32)> {
        let all = self.words.iter().map(|(word, used)| (*word, used.takes + used.may_take));
        all.filter(|(_, times)| *times > 0)
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
