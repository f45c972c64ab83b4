//! Locks of a program's own, known by their form: words of memory that atomic instructions take and give.
//!
//! ```text
//! xor eax, eax; mov ecx, 1; lock cmpxchg [w], ecx      takes w: 0 becomes another number; so does `xchg` with one
//! xor eax, eax; xchg [w], eax                          gives it: it becomes 0, or is counted down
//! ```
//!
//! So are Rust's `Mutex` and `RwLock`, parking_lot's, and spin locks. A word is a lock where two threads took it, each
//! gave it back as often as it took it, and none that takes it gave it without. Where a thread tries again, it takes
//! the word once: from its first try on.
//!
//! A `cmpxchg` whose numbers are unknown may take a share, as of an `RwLock`, or be anything else: it is a share of a
//! word that is also taken alone; and the word is taken alone by it where threads wait for the word in the kernel.
//!
//! A plain store of 0 gives a word where its address stands in the code. Where it does not, such a store gives the word
//! that the thread took last, if one instruction stores so many bytes just once each time that a thread has taken the
//! word; of several, the last of those that find the word by the register and distance by which it was taken, or else
//! the last.

use heuristics::SegmentTable;
use machine::{Instruction, Operand, Operation, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, Pc, Trace};

use super::is_in_library;
use super::values::{self, Found, History};
use crate::waiting::Code;

/// What an instruction does to the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum Does {
    Takes,
    /// It takes the word, or a share of it, or does something else.
    MayTake,
    Gives,
    /// It counts the word down, clears a bit of it, or puts an unknown number there: it gives it where the thread has
    /// it.
    MayGive,
}

/// Words of a thread that are looked at.
const MOST_WORDS: usize = 1 << 14;

/// An instruction of a block that may act on a lock.
#[derive(Clone, Copy, Debug)]
struct Act {
    pc: Pc,
    /// Which of the block's instructions it is.
    number: usize,
    does: Does,
    /// What it puts is not known from the code of its block.
    is_open: bool,
    word: Word,
    /// How many bytes it has.
    size: u16,
    /// By which register it finds the word, and how far from there.
    at: Option<(Register, i64)>,
}

/// Which word an instruction acts on.
#[derive(Clone, Copy, Debug)]
enum Word {
    /// Its address stands in the code.
    At(u64),
    /// Which of the addresses that were recorded for the block is its address.
    Recorded(usize),
    /// Its address is unknown.
    Unknown,
}

/// The instructions that may act on locks of the program's own.
pub(in crate::view) struct Acts<'a> {
    by_block: Vec<Box<[Act]>>,
    /// Stores in functions that a symbol calls an atomic's, as without optimisation.
    of_atomics: FxHashSet<Pc>,
    table: &'a SegmentTable,
}

impl<'a> Acts<'a> {
    /// Those of all blocks, outside of the C library and of runtimes.
    pub fn of(trace: &Trace, table: &'a SegmentTable, leading: Option<&Code>) -> Acts<'a> {
        let code = |id| -> Vec<Option<Instruction<'_>>> {
            table.of_block(id).iter().flat_map(|segment| table.listing(*segment).iter()).collect()
        };
        // What a block does not show another may, which came there by another way.
        let mut known: FxHashMap<Pc, Does> = FxHashMap::default();
        let mut by_block: Vec<Vec<Act>> = Vec::new();
        let (mut taken, mut sizes) = (FxHashSet::default(), FxHashSet::default());
        for (id, block) in trace.blocks().iter() {
            let mut acts = Vec::new();
            if block.instructions.iter().any(|i| i.memory > 0) {
                let code = code(id);
                let mut recorded = 0;
                for (i, instruction) in block.instructions.iter().enumerate() {
                    let (pc, at) = (instruction.pc, recorded);
                    recorded += usize::from(instruction.memory);
                    let mut is_open = false;
                    let constant = |register| {
                        let known = constant(&code, i, register, leading);
                        is_open |= known.is_none();
                        known
                    };
                    let atomic =
                        code[i].filter(|one| one.is_atomic() && instruction.memory > 0 && !is_in_library(trace, pc));
                    let Some(does) = atomic.and_then(|one| does(one, constant)) else { continue };
                    let size = code[i].and_then(Instruction::address).map_or(0, |memory| memory.size);
                    let (word, at) = (Word::Recorded(at), code[i].and_then(by_register));
                    acts.push(Act { pc, number: i, does, is_open, word, size, at });
                    if does == Does::Takes || is_open {
                        taken.extend(code[i].and_then(Instruction::place));
                        sizes.insert(size);
                    }
                    if !matches!(does, Does::MayTake | Does::MayGive) || !known.contains_key(&pc) {
                        known.insert(pc, does);
                    }
                }
            }
            by_block.push(acts);
        }
        by_block.iter_mut().flatten().for_each(|act| act.does = known[&act.pc]);
        if !sizes.is_empty() {
            for ((id, _), acts) in trace.blocks().iter().zip(&mut by_block) {
                let code = code(id);
                let stores = (0..code.len()).filter_map(|i| Some((i, may_store_nothing(&code, i, leading)?)));
                acts.extend(stores.filter_map(|(number, (one, is_open))| {
                    let memory = one.address().filter(|memory| sizes.contains(&memory.size))?;
                    let word = match one.place() {
                        Some(place) => taken.contains(&place).then_some(Word::At(place)),
                        None => (!memory.is_in_frame()).then_some(Word::Unknown),
                    };
                    let (pc, does, size, at) = (one.pc(), Does::Gives, memory.size, by_register(one));
                    let word = word.filter(|_| !is_in_library(trace, pc))?;
                    Some(Act { pc, number, does, is_open, word, size, at })
                }));
                acts.sort_by_key(|act| act.number);
            }
        }
        let stores = by_block.iter().flatten().filter(|act| matches!(act.word, Word::Unknown)).map(|act| act.pc);
        let is_of_atomics = |pc: &Pc| trace.symbol_of(*pc).is_some_and(|symbol| symbol.name.contains("atomic"));
        let of_atomics = stores.filter(is_of_atomics).collect();
        Acts { by_block: by_block.into_iter().map(Vec::into_boxed_slice).collect(), of_atomics, table }
    }

    /// Of a trace whose lanes are told as they are.
    pub fn none(trace: &Trace, table: &'a SegmentTable) -> Acts<'a> {
        Acts {
            by_block: trace.blocks().iter().map(|_| Box::default()).collect(),
            of_atomics: FxHashSet::default(),
            table,
        }
    }

    /// Whether the way that leads to some instruction tells what it does.
    pub fn need_ways(&self) -> bool {
        self.by_block.iter().flatten().any(|act| act.is_open)
    }

    /// Whether some instruction of the block may act on a lock.
    #[inline]
    pub fn has(&self, block: BlockId) -> bool {
        !self.by_block[block.index()].is_empty()
    }
}

/// The register at whose distance from it the instruction accesses memory.
fn by_register(instruction: Instruction) -> Option<(Register, i64)> {
    let memory = instruction.address().filter(|memory| memory.index.is_none())?;
    Some((memory.base?.register, memory.displacement))
}

/// What an atomic instruction may do to a lock, by the constants in registers.
fn does(instruction: Instruction, mut constant: impl FnMut(Register) -> Option<i64>) -> Option<Does> {
    match instruction.operation() {
        Operation::Exchange => {
            let register = instruction.register(1).or_else(|| instruction.register(0))?;
            Some(constant(register.register).map_or(Does::MayGive, |put| match put {
                0 => Does::Gives,
                _ => Does::Takes,
            }))
        }
        Operation::CompareExchange => {
            let put = instruction.register(1).and_then(|part| constant(part.register));
            match (constant(Register::AX), put) {
                (Some(0), Some(0)) => None,
                (_, Some(0)) => Some(Does::MayGive),
                (Some(0), _) | (None, Some(_)) => Some(Does::Takes),
                (Some(_), Some(_)) => None,
                _ => Some(Does::MayTake),
            }
        }
        Operation::TestAndSet => Some(Does::Takes),
        Operation::TestAndClear => Some(Does::Gives),
        Operation::Subtract | Operation::ExchangeAdd | Operation::Add | Operation::And => Some(Does::MayGive),
        _ => (instruction.operand_count() == 1).then_some(Does::MayGive),
    }
}

/// The instruction of this number, if it may write 0 to memory; and whether that is open.
fn may_store_nothing<'a>(
    code: &[Option<Instruction<'a>>],
    at: usize,
    leading: Option<&Code>,
) -> Option<(Instruction<'a>, bool)> {
    let instruction = code[at].filter(|one| one.operation() == Operation::Move)?;
    let put = match instruction.operand(1) {
        _ if instruction.operand(0) != Operand::Memory => return None,
        Operand::Constant(put) => Some(put),
        Operand::Register(part) => constant(code, at, part.register, leading),
        _ => return None,
    };
    put.is_none_or(|put| put == 0).then_some((instruction, put.is_none()))
}

/// What a general register holds before the instruction of this number, where the code on the way there says so; before
/// the block, all that leads there.
fn constant(code: &[Option<Instruction<'_>>], at: usize, register: Register, leading: Option<&Code>) -> Option<i64> {
    match values::found(code[..=at].iter().copied(), register) {
        Found::Constant(constant) => Some(constant),
        Found::Unknown => None,
        Found::Before(register, mask) => {
            let begin = (*code.first()?)?.pc();
            leading?.constant_at(begin, register.index()).map(|constant| constant.cast_signed() & mask)
        }
    }
}

/// What a thread does with a word.
#[derive(Clone, Debug, Default)]
struct Use {
    size: u16,
    at: Option<(Register, i64)>,
    has: bool,
    /// What may have taken it, if it is not sure that the thread has it.
    unsure: Option<Pc>,
    /// How often it took the word alone, as a share, gave it back, and gave it without having it.
    takes: u32,
    may_take: u32,
    gives: u32,
    strays: u32,
    /// Stores since it was taken last, by unknown addresses, each with how often it was run.
    stores: Vec<(Pc, u32)>,
    /// Of them, those by the register and distance by which it was taken.
    alike: Vec<Pc>,
    /// Those that were run once each time that the word was taken; none before there were any.
    once: Option<Vec<Pc>>,
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
    words: FxHashMap<u64, Use>,
    places: FxHashMap<u64, FxHashSet<Pc>>,
    /// Words that it waited for in the kernel.
    waited: FxHashSet<u64>,
    /// The words that it has.
    has: Vec<u64>,
    /// What never took a word, though it looked so; or does now this and now that.
    refuted: FxHashSet<Pc>,
    history: History,
    /// What instructions do whose code does not tell it.
    resolved: FxHashMap<Pc, Option<Does>>,
    /// How often it was looked what an instruction does.
    tries: FxHashMap<Pc, u32>,
    /// Stores that have written something else than 0.
    never: FxHashSet<Pc>,
    /// Stores that have written 0 in a function for atomics.
    of_atomics: FxHashSet<Pc>,
}

impl Uses {
    /// The thread runs a block that may act on locks, with these addresses, up to an instruction.
    pub fn block(&mut self, acts: &Acts, block: BlockId, addresses: &[u64]) {
        for act in &acts.by_block[block.index()] {
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
                Does::MayGive => continue,
            }
            self.places.entry(word).or_default().insert(act.pc);
        }
    }

    /// The thread ran so many instructions of a block.
    pub fn ran(&mut self, block: BlockId, executed: u32) {
        self.history.ran(block, executed);
    }

    /// The thread goes on elsewhere, as in a handler of a signal.
    pub fn lose_way(&mut self) {
        self.history.clear();
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
            let known = self.history.constant(acts.table, block, act.number, register);
            is_known &= known.is_some();
            known
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
}

/// The words that are locks.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct OwnLocks {
    /// Whether lanes may share it.
    pub words: FxHashMap<u64, bool>,
    /// What acts on them; true: on the word that the thread took last.
    pub acts: FxHashMap<Pc, (Does, bool)>,
}

impl OwnLocks {
    pub fn new<'a>(threads: impl Iterator<Item = &'a Uses> + Clone, acts: &Acts) -> OwnLocks {
        let mut all = OwnLocks::default();
        let mut of_word: FxHashMap<u64, Vec<&Use>> = FxHashMap::default();
        for (word, used) in threads.clone().flat_map(|thread| &thread.words) {
            of_word.entry(*word).or_default().push(used);
        }
        let waited: FxHashSet<u64> = threads.clone().flat_map(|thread| &thread.waited).copied().collect();
        let mut refuted: FxHashSet<Pc> = threads.clone().flat_map(|thread| &thread.refuted).copied().collect();
        let mut resolved: FxHashMap<Pc, Option<Does>> = FxHashMap::default();
        for (pc, does) in threads.clone().flat_map(|thread| &thread.resolved) {
            if resolved.insert(*pc, *does).is_some_and(|before| before != *does) {
                refuted.insert(*pc);
            }
        }
        let never: FxHashSet<Pc> = threads.clone().flat_map(|thread| &thread.never).copied().collect();
        let done = |act: &Act| resolved.get(&act.pc).copied().unwrap_or(Some(act.does));
        let mut places: FxHashMap<u64, FxHashSet<Pc>> = FxHashMap::default();
        for (word, of_thread) in threads.clone().flat_map(|thread| &thread.places) {
            places.entry(*word).or_default().extend(of_thread.difference(&refuted));
        }
        let all_acts = || acts.by_block.iter().flat_map(|acts| acts.iter()).filter(|act| !refuted.contains(&act.pc));
        let shares: FxHashSet<Pc> =
            all_acts().filter(|act| done(act) == Some(Does::MayTake)).map(|act| act.pc).collect();
        for (word, uses) in of_word {
            let is_taken = uses.iter().any(|used| used.takes > 0);
            let takes = |used: &&&Use| used.takes + used.may_take > 0;
            let is_given = |used: &&Use| {
                let is_stored = used.once.as_ref().is_none_or(|once| once.iter().any(|pc| !never.contains(pc)));
                !used.has && used.strays == 0 && is_stored && used.gives == used.takes + used.may_take
            };
            if (is_taken || waited.contains(&word))
                && uses.iter().filter(takes).count() > 1
                && uses.iter().filter(takes).all(is_given)
            {
                let is_shared = places.get(&word).is_some_and(|places| !places.is_disjoint(&shares));
                all.words.insert(word, is_taken && is_shared);
            }
        }
        places.retain(|word, _| all.words.contains_key(word));
        let places: FxHashSet<Pc> = places.into_values().flatten().collect();
        let of_last = |act: &Act| matches!(act.word, Word::Unknown);
        let those = all_acts().filter(|act| places.contains(&act.pc) && !never.contains(&act.pc));
        all.acts = those.filter_map(|act| Some((act.pc, (done(act)?, of_last(act))))).collect();
        all
    }
}
