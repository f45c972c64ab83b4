//! Ticket locks of a program's own, known by their form.
//!
//! ```text
//! mov eax, 1; lock xadd [next], eax            draws a ticket: from here on the thread has the lock
//! wait: mov edx, [serving]; cmp edx, eax; jne wait
//! …
//! add eax, 1; mov [serving], eax               gives it: what is served becomes one more
//! ```
//!
//! The word of the lock is the one that tickets are drawn from: what `xadd` found there is compared with something that
//! is loaded, at least two threads do so, and each makes that one more at one place each time that it has drawn. Where
//! the code does not tell what is served, the branch behind the comparison must also lead back to it, or a thread have
//! come back: it may be a number that only looks like a ticket. Such words are counted.

use machine::{Condition, Instruction, Operand, Operation};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, Kind, Pc};

use super::super::values::{Found, History, Place, adds};
use super::acts::Acts;
use super::by_block::Since;

/// What an instruction may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// It adds to a word and says what it found.
    Draws,
    /// Another atomic addition of 1.
    Counts,
    /// It compares two values for being equal; whether the branch behind leads back to it.
    Looks { leads_back: bool },
    /// It writes one more than it finds.
    Increments,
    /// It writes the register of its second operand.
    Stores,
}

pub(super) fn does(code: &[Option<Instruction>], number: usize) -> Option<Does> {
    let one = code[number]?;
    let to_memory = one.operand_count() > 0 && one.operand(0) == Operand::Memory;
    let is_number = one.address().is_some_and(|memory| [2, 4, 8].contains(&memory.size) && !memory.is_local());
    match one.operation() {
        Operation::ExchangeAdd if one.is_atomic() => Some(Does::Draws),
        Operation::Compare => {
            let behind = || code[number + 1..].iter().copied();
            let decides = behind().next().flatten().filter(|next| {
                (next.kind() == Kind::Branch || next.operation() == Operation::SetIf)
                    && matches!(next.condition(), Condition::Equal | Condition::NotEqual)
            });
            decides?;
            let branch = behind().flatten().find(|next| next.kind() == Kind::Branch);
            let leads_back = branch.and_then(|branch| branch.target()).is_some_and(|to| {
                let within = to..one.pc();
                to <= one.pc()
                    && one.pc().0 - to.0 < NEAR
                    && !code
                        .iter()
                        .flatten()
                        .any(|other| other.operation() == Operation::ExchangeAdd && within.contains(&other.pc()))
            });
            Some(Does::Looks { leads_back })
        }
        _ if !to_memory || !is_number => None,
        Operation::Move | Operation::Exchange => one.register(1).map(|_| Does::Stores),
        _ if adds(one).is_none_or(|(_, by)| by != 1) => None,
        _ if one.is_atomic() => Some(Does::Counts),
        _ => Some(Does::Increments),
    }
}

/// What is served: its address where the code tells it, else how far it lies from where a pointer to it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Served {
    place: Option<u64>,
    /// The address that the pointer is loaded from, or of the array in which it is, if the code tells that.
    pointer: Option<u64>,
    displacement: i64,
    size: u16,
}

/// Finds a value before so many instructions.
pub(super) trait Find<'a>: Fn(usize, Place) -> Found<'a> {}

impl<'a, F: Fn(usize, Place) -> Found<'a>> Find<'a> for F {}

impl Served {
    /// How far from a pointer it lies, and its size.
    pub fn at(&self) -> (i64, u16) {
        (self.displacement, self.size)
    }

    /// What an instruction accesses whose base register is found so.
    pub fn by<'a>(one: Instruction, before: usize, found: impl Find<'a>) -> Option<Served> {
        let memory = one.address()?;
        let from = |pointer, displacement| Some(Served { place: None, pointer, displacement, size: memory.size });
        let at = |place| Some(Served { place: Some(place), pointer: None, displacement: 0, size: memory.size });
        let displacement = memory.displacement;
        let Some(base) = memory.base.filter(|_| !memory.by_pc) else { return at(one.place()?) };
        match found(before, Place::Register(base.register)) {
            Found::Made(lea, by, _) if memory.index.is_none() && lea.place().is_some() => {
                at(lea.place()?.wrapping_add_signed(by + displacement))
            }
            Found::Made(sum, by, since) => {
                let address = sum.address().filter(|_| sum.operation() == Operation::Address);
                let parts = match (address, sum.operation()) {
                    (Some(address), _) => [address.base, address.index],
                    (None, Operation::Add) => [sum.register(0), sum.register(1)],
                    _ => [None; 2],
                };
                let place = |part| match found(before + since, part) {
                    Found::Made(one, ..) | Found::Loaded(one, ..) => one.place(),
                    _ => None,
                };
                let parts = parts.into_iter().flatten().map(|part| Place::Register(part.register));
                let more = address.filter(|_| sum.place().is_none()).map_or(0, |address| address.displacement);
                from(sum.place().or_else(|| parts.filter_map(place).next()), by + displacement + more)
            }
            Found::Loaded(load, by, _) => from(load.place(), by + displacement),
            _ => from(None, displacement),
        }
    }
}

/// What may give a lock, with the address if that was recorded.
type Give = (Pc, Option<u64>);

/// What a thread does with a word from which tickets are drawn.
#[derive(Clone, Debug, Default)]
struct Use {
    /// Where the ticket was drawn that the thread has.
    has: Option<Pc>,
    served: Option<Served>,
    /// Whether threads look again and again, if they have to.
    waits: bool,
    looks: u32,
    /// What may have given the lock since it was taken.
    gives: Since<Give>,
    /// By where tickets were drawn: what did so just once each time, the last one last.
    once: FxHashMap<Pc, Vec<Give>>,
}

impl Use {
    /// The thread draws another ticket, or ends.
    fn end(&mut self) {
        let Some(drawn) = self.has.take() else { return };
        self.looks = 0;
        let once = self.gives.once(self.once.get(&drawn));
        self.once.insert(drawn, once);
    }
}

/// Words of a thread that are looked at, and how many of the tickets that it drew last.
const MOST_WORDS: usize = 1 << 12;
const MOST_DRAWN: usize = 4;

/// How long a loop is at most in which a thread waits.
const NEAR: u64 = 256;

/// How many comparisons are looked at after a ticket was drawn, and how often one.
const MOST_LOOKS: u32 = 8;
const MOST_TRIES: u32 = 256;

/// How often an instruction has written to the same until it is taken to do so always.
const MOST_ALIKE: u32 = 64;

/// What a thread does with tickets.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    words: FxHashMap<u64, Use>,
    /// The words of locks that it has.
    has: Vec<u64>,
    /// The tickets drawn last: from which word, and where.
    drawn: Vec<(u64, Pc)>,
    looks_left: u32,
    /// Whether what it has just compared was so before.
    looks_on: bool,
    /// The block in which it does nothing but look again for what it has.
    spins_in: Option<BlockId>,
    tries: FxHashMap<Pc, u32>,
    /// By comparison: where the ticket is drawn that it looks at.
    compared: FxHashMap<Pc, Pc>,
    /// By store: whether it puts one more than something.
    puts_one_more: FxHashMap<Pc, bool>,
    /// By what may give a lock: to what it writes, and how often in a row it was that.
    given: FxHashMap<Pc, (Served, u32)>,
}

impl Uses {
    /// The thread runs a block, with these addresses.
    pub fn block(&mut self, acts: &Acts, history: &History, (block, executed): (BlockId, usize), addresses: &[u64]) {
        // It looks once more, as it has already.
        if self.spins_in == Some(block) {
            return;
        }
        (self.spins_in, self.looks_on) = (None, false);
        let is_idle = self.has.is_empty() && self.looks_left == 0;
        if is_idle && !acts.tickets.of(block).iter().any(|act| act.does == Does::Draws) {
            return;
        }
        for (act, address) in acts.tickets.ran((block, executed), addresses) {
            let is_idle = self.has.is_empty() || matches!(act.does, Does::Looks { .. }) && self.drawn.is_empty();
            if is_idle && !matches!(act.does, Does::Draws | Does::Looks { .. }) {
                continue;
            }
            let is_enough = self.looks_left == 0 && !self.compared.contains_key(&act.pc);
            if is_enough && matches!(act.does, Does::Looks { .. }) {
                continue;
            }
            let is_other = |by: &Served| self.has.iter().all(|word| self.words[word].served != Some(*by));
            if let Some((by, MOST_ALIKE)) = self.given.get(&act.pc)
                && act.does != Does::Draws
                && is_other(by)
            {
                continue;
            }
            let Some(one) = acts.instruction(block, act.number) else { return };
            let found = |before, place| history.found(acts.table, (block, act.number, before), place);
            match act.does {
                Does::Draws => {
                    let Some(word) = address else { continue };
                    self.may_give(one, (act.pc, address), found);
                    self.draw(word, act.pc);
                }
                Does::Counts => self.may_give(one, (act.pc, address), found),
                Does::Increments => self.may_give(one, (act.pc, None), found),
                Does::Stores => self.may_give(one, (act.pc, None), found),
                Does::Looks { leads_back } => self.look(one, leads_back, found),
            }
        }
        let only_looks = || acts.tickets.of(block).iter().all(|act| matches!(act.does, Does::Looks { .. }));
        self.spins_in = Some(block).filter(|_| self.looks_on && only_looks());
    }

    fn draw(&mut self, word: u64, pc: Pc) {
        if let Some(used) = self.words.get_mut(&word) {
            used.end();
            self.has.retain(|has| *has != word);
        }
        self.drawn.retain(|(drawn, _)| *drawn != word);
        if self.drawn.len() == MOST_DRAWN {
            self.drawn.remove(0);
        }
        self.drawn.push((word, pc));
        self.looks_left = MOST_LOOKS;
    }

    /// The thread compares two values: perhaps its ticket with what is served.
    fn look<'a>(&mut self, one: Instruction<'a>, leads_back: bool, found: impl Find<'a> + Copy) {
        let drawn = |pc: Pc| self.drawn.iter().rfind(|(_, at)| *at == pc).copied();
        let has = |(word, pc): &(u64, Pc)| self.words.get(word).is_some_and(|used| used.has == Some(*pc));
        let again = self.compared.get(&one.pc()).and_then(|pc| drawn(*pc)).filter(has);
        let (word, served) = if let Some((word, _)) = again {
            (word, None)
        } else {
            let tries = self.tries.entry(one.pc()).or_default();
            if self.looks_left == 0 || *tries == MOST_TRIES {
                return;
            }
            (*tries, self.looks_left) = (*tries + 1, self.looks_left - 1);
            let Some((pc, served)) = ticket(one, found) else { return };
            let Some((word, _)) = drawn(pc).filter(|_| self.words.len() < MOST_WORDS) else { return };
            self.tries.insert(one.pc(), 0);
            self.compared.insert(one.pc(), pc);
            (word, Some((pc, served)))
        };
        let used = self.words.entry(word).or_default();
        if let Some((pc, served)) = served {
            (used.has, used.served) = (Some(pc), Some(served));
            self.has.push(word);
        }
        used.looks += u32::from(used.gives.0.is_empty());
        used.waits |= leads_back || used.looks > 1;
        self.looks_on = used.looks > 1;
    }

    /// The thread may give a lock: of locks in each other the inner one first.
    fn may_give<'a>(&mut self, one: Instruction<'a>, give: Give, found: impl Find<'a> + Copy) {
        if self.has.is_empty() {
            return;
        }
        let known = self.given.get(&give.0).copied();
        let by = match known {
            Some((by, MOST_ALIKE)) => by,
            _ => {
                let Some(by) = Served::by(one, 0, found) else { return };
                let alike = known.map_or(0, |(before, alike)| if before == by { alike + 1 } else { 0 });
                self.given.insert(give.0, (by, alike));
                by
            }
        };
        let is_one_more = one.register(1).is_none() || by.place.is_some() || self.puts_one_more(one, found);
        let fits = |word: &&u64| is_one_more && self.words[*word].served == Some(by) && give.1 != Some(**word);
        let is_new = |word: &&u64| self.words[*word].gives.0.iter().all(|(known, _)| known.0 != give.0);
        let inner_first = || self.has.iter().rev().filter(fits);
        if let Some(word) = inner_first().find(is_new).or_else(|| inner_first().next()) {
            self.words.get_mut(word).expect("it is had").gives.does(give);
        }
    }

    /// Whether what it stores is one more than something; found out once.
    fn puts_one_more<'a>(&mut self, one: Instruction, found: impl Find<'a>) -> bool {
        let is_atomic = one.operation() == Operation::ExchangeAdd;
        is_atomic
            || *self.puts_one_more.entry(one.pc()).or_insert_with(|| {
                let put = Place::of(one, 1).map(|place| found(0, place));
                matches!(put, Some(Found::Loaded(_, 1, _) | Found::Made(_, 1, _)))
            })
    }

    /// The thread ends.
    pub fn end(&mut self) {
        self.has.clear();
        self.words.values_mut().for_each(Use::end);
    }
}

/// Where a ticket is drawn that is compared with something that is loaded, and what that is.
fn ticket<'a>(one: Instruction<'a>, found: impl Find<'a> + Copy) -> Option<(Pc, Served)> {
    let drawn = |index| match Place::of(one, index).map(|place| found(0, place)) {
        Some(Found::Made(made, 0, _)) if made.operation() == Operation::ExchangeAdd => Some(made.pc()),
        _ => None,
    };
    let served = |index| match Place::of(one, index).map(|place| found(0, place)) {
        None if one.operand(index) == Operand::Memory => Served::by(one, 0, found),
        Some(Found::Loaded(load, 0, before)) => Served::by(load, before, found),
        _ => None,
    };
    [(0, 1), (1, 0)].into_iter().find_map(|(one, other)| Some((drawn(one)?, served(other)?)))
}

/// The locks from whose words tickets are drawn.
#[derive(Default)]
pub(super) struct Tickets {
    pub words: FxHashSet<u64>,
    /// Where tickets are drawn.
    pub draws: FxHashSet<Pc>,
    /// By address of what is served, where it is known: the word.
    pub served: FxHashMap<u64, u64>,
    /// What gives a lock; whether its address tells which.
    pub gives: FxHashMap<Pc, bool>,
    /// How many words look so, and may be no locks.
    pub doubtful: usize,
}

impl Tickets {
    pub fn new<'a>(threads: impl Iterator<Item = &'a Uses>) -> Tickets {
        let mut of_word: FxHashMap<u64, Vec<&Use>> = FxHashMap::default();
        for (word, used) in threads.flat_map(|thread| &thread.words) {
            of_word.entry(*word).or_default().push(used);
        }
        let mut all = Tickets::default();
        for (word, uses) in of_word {
            let Some(served) = uses[0].served else { continue };
            let last = |used: &&Use| used.once.values().map(|once| once.last().copied()).collect::<Option<Vec<Give>>>();
            let Some(gives) = uses.iter().map(last).collect::<Option<Vec<_>>>() else { continue };
            let gives = gives.concat();
            let address = served.place.or(gives[0].1);
            let is_like_a_lock = uses.len() > 1
                && uses.iter().all(|used| used.served == Some(served))
                && gives.iter().all(|(_, at)| at.is_none_or(|at| Some(at) == address));
            let is_known = served.place.or(served.pointer).is_some();
            if is_like_a_lock && !is_known && !uses.iter().any(|used| used.waits) {
                all.doubtful += 1;
            } else if is_like_a_lock {
                all.words.insert(word);
                all.draws.extend(uses.iter().flat_map(|used| used.once.keys()));
                all.served.extend(address.map(|address| (address, word)));
                all.gives.extend(gives.iter().map(|(pc, at)| (*pc, served.place.or(*at).is_some())));
            }
        }
        all
    }
}
