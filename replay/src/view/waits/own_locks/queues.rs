//! Locks of a program's own at which threads queue, known by their form: Mellor-Crummey and Scott's, and Craig, Landin
//! and Hagersten's.
//!
//! ```text
//! xchg [tail], rax                   puts itself at the end: from here on the thread has the lock
//! mov [rax+next], rdi                if there is one before: tells it; or looks at what that one writes
//! wait: cmp byte [rdi+waits], 0; jne wait
//! …
//! lock cmpxchg [tail], rcx           gives it, if there is nobody behind
//! mov byte [rsi+waits], 0            or lets the next one go
//! ```
//!
//! The word of the lock is the end of the queue. It is one where what `xchg` found there is used as an address, some
//! thread then waits in a loop until what it loads is 0, at least two threads do so, and each time either `cmpxchg`
//! follows at the word, or one store of 0 so far from a pointer as what was waited for. Where nobody ever waited,
//! `cmpxchg` must have put 0 there each time.

use machine::{Condition, Instruction, Operand, Operation};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, Kind, Pc};

use super::super::values::{Found, History, Place};
use super::acts::Acts;
use super::by_block::Since;
use super::tickets::{Find, Served};

/// What an instruction may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// It exchanges an address.
    Queues,
    /// It compares and exchanges one.
    Leaves,
    /// It compares what it loads with 0; whether the branch behind leads back.
    Looks { leads_back: bool },
    /// It writes a register, or 0.
    Stores,
}

pub(super) fn does(code: &[Option<Instruction>], number: usize) -> Option<Does> {
    let one = code[number]?;
    let memory = one.address().filter(|memory| !memory.is_local());
    let to_memory = one.operand_count() > 0 && one.operand(0) == Operand::Memory;
    let is_word = one.is_atomic() && memory.is_some_and(|memory| memory.size == 8);
    match one.operation() {
        Operation::Exchange if is_word => Some(Does::Queues),
        Operation::CompareExchange if is_word => Some(Does::Leaves),
        Operation::Test | Operation::Compare => {
            let is_zero = one.operation() == Operation::Compare && one.constant(1) == Some(0);
            let behind = code[number + 1..].iter().flatten().find(|next| next.kind() == Kind::Branch);
            let branch = behind.filter(|_| is_zero || one.operation() == Operation::Test)?;
            let decides = matches!(branch.condition(), Condition::Equal | Condition::NotEqual);
            let leads_back = branch.target().is_some_and(|to| to <= one.pc() && one.pc().0 - to.0 < NEAR);
            decides.then_some(Does::Looks { leads_back })
        }
        Operation::Move | Operation::Exchange if to_memory && memory.is_some() => {
            (one.register(1).is_some() || one.constant(1) == Some(0)).then_some(Does::Stores)
        }
        _ => None,
    }
}

/// How long a loop is at most in which a thread waits.
const NEAR: u64 = 256;

/// How far from the address of who queues something lies, and its size.
type Flag = (i64, u16);

/// A store of 0, and where to.
type Give = (Pc, Served);

/// Words of a thread that are looked at, and how many comparisons after it has queued.
const MOST_WORDS: usize = 1 << 10;
const MOST_LOOKS: u32 = 12;

/// How often it is looked what a store does.
const MOST_TRIES: u32 = 64;

/// What a thread does with a word that may be the end of a queue.
#[derive(Clone, Debug, Default)]
struct Use {
    /// Where the thread has queued that has the lock.
    has: Option<Pc>,
    queues: FxHashSet<Pc>,
    leaves: FxHashSet<Pc>,
    /// Whether it has left something else than 0 there.
    leaves_something: bool,
    /// What it found there was used as an address since.
    is_linked: bool,
    /// What it waited for, and whether it had to, or would have.
    waits_for: FxHashMap<Flag, bool>,
    looks: FxHashMap<(Pc, Flag), u32>,
    gives: Since<Give>,
    /// By where the thread had queued: what gave the lock just once each time that nothing else did.
    once: FxHashMap<Pc, Vec<Give>>,
}

impl Use {
    /// The thread queues once more, or ends.
    fn end(&mut self) {
        if let Some(at) = self.has {
            let once = self.gives.once(self.once.get(&at));
            self.once.insert(at, once);
        }
        self.begin(None);
    }

    fn begin(&mut self, has: Option<Pc>) {
        (self.has, self.is_linked) = (has, false);
        self.gives = Since::default();
        self.looks.clear();
    }
}

/// What a thread does with queues.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    words: FxHashMap<u64, Use>,
    /// The words of locks that it has.
    has: Vec<u64>,
    looks_left: u32,
    /// Where the address that it put last comes from, and how much was added.
    put: Option<(Pc, i64)>,
    /// By store, once it was looked at often enough: where it puts 0.
    stores: FxHashMap<Pc, (Option<Served>, u32)>,
}

impl Uses {
    /// The thread runs a block, with these addresses.
    pub fn block(&mut self, acts: &Acts, history: &History, (block, executed): (BlockId, usize), addresses: &[u64]) {
        if self.has.is_empty() && !acts.queues.of(block).iter().any(|act| act.does == Does::Queues) {
            return;
        }
        for (act, address) in acts.queues.ran((block, executed), addresses) {
            let has_looked = matches!(act.does, Does::Looks { .. }) && self.looks_left == 0;
            if act.does != Does::Queues && self.has.is_empty() || has_looked {
                continue;
            }
            let Some(one) = acts.instruction(block, act.number) else { return };
            let found = |before, place| history.found(acts.table, (block, act.number, before), place);
            match act.does {
                Does::Queues => match Place::of(one, 1).map(|place| found(0, place)) {
                    // A store, or a lock of another kind.
                    Some(Found::Constant(_)) => self.may_give(one, act.pc, found),
                    _ if base_of(one, 0, found).as_ref().is_some_and(is_by_exchange) => self.link(),
                    put => {
                        self.queue(address, act.pc);
                        self.put = put.and_then(origin);
                    }
                },
                Does::Leaves => {
                    let put = Place::of(one, 1).map(|place| found(0, place));
                    self.leave(address, act.pc, matches!(put, Some(Found::Constant(0))));
                }
                Does::Looks { leads_back } => self.look(one, leads_back, found),
                Does::Stores => self.may_give(one, act.pc, found),
            }
        }
    }

    fn queue(&mut self, word: Option<u64>, pc: Pc) {
        let Some(word) = word.filter(|word| self.words.len() < MOST_WORDS || self.words.contains_key(word)) else {
            return;
        };
        let used = self.words.entry(word).or_default();
        used.end();
        used.begin(Some(pc));
        used.queues.insert(pc);
        self.has.retain(|has| *has != word);
        self.has.push(word);
        self.looks_left = MOST_LOOKS;
    }

    /// What the thread found when it queued is used as an address.
    fn link(&mut self) {
        if let Some(used) = self.has.last().and_then(|word| self.words.get_mut(word)) {
            used.is_linked = true;
        }
    }

    fn leave(&mut self, word: Option<u64>, pc: Pc, puts_nothing: bool) {
        let Some(word) = word.filter(|word| self.has.contains(word)) else { return };
        self.has.retain(|has| *has != word);
        let used = self.words.get_mut(&word).expect("it is had");
        used.leaves.insert(pc);
        used.leaves_something |= !puts_nothing;
        used.begin(None);
    }

    /// The thread compares something with 0: perhaps what it waits for.
    fn look<'a>(&mut self, one: Instruction<'a>, leads_back: bool, found: impl Find<'a> + Copy) {
        let Some(used) = self.has.last().and_then(|word| self.words.get_mut(word)) else { return };
        if self.looks_left == 0 {
            return;
        }
        let (load, before) = match Place::of(one, 0).map(|place| found(0, place)) {
            None if one.operand(0) == Operand::Memory => (one, 0),
            Some(Found::Loaded(load, 0, before)) => (load, before),
            _ => return,
        };
        self.looks_left -= 1;
        let Some(memory) = load.address() else { return };
        let base = base_of(load, before, found);
        // It looks at what the one before it writes, or at what that one will write for it.
        let by_exchange = base.as_ref().is_some_and(is_by_exchange);
        used.is_linked |= by_exchange;
        let of_thread = (memory.base.is_none() && memory.segment.is_some()).then_some((OF_THREAD, 0));
        let Some((from, by)) = of_thread.or(base.and_then(origin)).filter(|_| used.is_linked) else { return };
        let put = match self.put {
            _ if by_exchange => 0,
            Some((pc, added)) if pc == from => added,
            _ => return,
        };
        let served = (by + memory.displacement - put, memory.size);
        let looks = used.looks.entry((one.pc(), served)).or_default();
        *looks += 1;
        *used.waits_for.entry(served).or_default() |= leads_back || *looks > 1;
    }

    /// The thread may give a lock: of locks in each other the inner one first.
    fn may_give<'a>(&mut self, one: Instruction<'a>, pc: Pc, found: impl Find<'a> + Copy) {
        if self.looks_left > 0 && base_of(one, 0, found).as_ref().is_some_and(is_by_exchange) {
            self.link();
        }
        let known = self.stores.get(&pc).copied();
        let by = match known {
            Some((by, MOST_TRIES)) => by,
            _ => {
                let put = Place::of(one, 1).map(|place| found(0, place));
                let is_zero = one.constant(1) == Some(0) || matches!(put, Some(Found::Constant(0)));
                let by = if is_zero { Served::by(one, 0, found) } else { None };
                let alike = known.map_or(0, |(before, alike)| if before == by { alike + 1 } else { 0 });
                self.stores.insert(pc, (by, alike));
                by
            }
        };
        let Some(by) = by else { return };
        let is_new = |word: &&u64| self.words[*word].gives.0.iter().all(|((_, known), _)| by.at() != known.at());
        let inner_first = || self.has.iter().rev();
        if let Some(word) = inner_first().find(is_new).or_else(|| inner_first().next()) {
            self.words.get_mut(word).expect("it is had").gives.does((pc, by));
        }
    }

    /// The thread ends.
    pub fn end(&mut self) {
        self.has.clear();
        self.words.values_mut().for_each(Use::end);
    }
}

/// Whether it is what an exchange found.
fn is_by_exchange(found: &Found) -> bool {
    matches!(found, Found::Made(made, ..) if made.operation() == Operation::Exchange && made.is_atomic())
}

/// Where the base of the address comes from that the instruction accesses, so many instructions before.
fn base_of<'a>(one: Instruction, before: usize, found: impl Find<'a>) -> Option<Found<'a>> {
    Some(found(before, Place::Register(one.address()?.base?.register)))
}

/// In place of an instruction: the address comes from where the thread has its own variables.
const OF_THREAD: Pc = Pc(0);

/// Which instruction made or loaded a value, and how much was added.
fn origin(found: Found) -> Option<(Pc, i64)> {
    match found {
        Found::Loaded(from, by, _) if from.address()?.segment.is_some() && from.address()?.base.is_none() => {
            Some((OF_THREAD, by))
        }
        Found::Made(from, by, _) | Found::Loaded(from, by, _) => Some((from.pc(), by)),
        _ => None,
    }
}

/// The locks at which threads queue.
#[derive(Default)]
pub(super) struct Queues {
    pub words: FxHashSet<u64>,
    pub queues: FxHashSet<Pc>,
    pub leaves: FxHashSet<Pc>,
    /// What lets the next one go.
    pub gives: FxHashSet<Pc>,
}

impl Queues {
    pub fn new<'a>(threads: impl Iterator<Item = &'a Uses>) -> Queues {
        let mut of_word: FxHashMap<u64, Vec<&Use>> = FxHashMap::default();
        for (word, used) in threads.flat_map(|thread| &thread.words) {
            of_word.entry(*word).or_default().push(used);
        }
        let mut all = Queues::default();
        for (word, uses) in of_word.into_iter().filter(|(_, uses)| uses.len() > 1) {
            let waits = || uses.iter().flat_map(|used| &used.waits_for).filter(|(_, waits)| **waits);
            let is_waited_for = |by: &Served| waits().any(|(flag, _)| by.at() == *flag);
            let last = |once: &Vec<Give>| Some(once.iter().rfind(|(_, by)| is_waited_for(by))?.0);
            let gives: Option<Vec<Pc>> = uses.iter().flat_map(|used| used.once.values()).map(last).collect();
            let leaves_nothing = |used: &&Use| !used.leaves.is_empty() && !used.leaves_something;
            let is_one = waits().next().is_some() || uses.iter().all(leaves_nothing);
            if let Some(gives) = gives.filter(|_| is_one) {
                all.words.insert(word);
                all.gives.extend(gives);
                all.queues.extend(uses.iter().flat_map(|used| &used.queues));
                all.leaves.extend(uses.iter().flat_map(|used| &used.leaves));
            }
        }
        all
    }
}
