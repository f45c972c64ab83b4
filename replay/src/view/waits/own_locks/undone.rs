//! Words that may be locks, whatever their code: what an atomic instruction found there decides where a thread goes,
//! and later the thread changes the word again and does not look.
//!
//! ```text
//! do { expected = -1; } while (!compare_exchange(owner, expected, me));  …  owner = -1;
//! while (fetch_add(holders, 1) != 0) fetch_sub(holders, 1);              …  fetch_sub(holders, 1);
//! ```
//!
//! It may also look where what is compared and exchanged is clearly changed back: by clearing bits or counting down, or
//! by counting up where that counted down.
//!
//! What counts references is the other way round: it counts up without a look, and looks last, when it counts down.
//! What gives out work, or keeps the largest number, is never changed back by who looked.

use machine::{Instruction, Operation, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, Kind, Pc};

use super::super::values::adds;
use super::acts::{Acts, constant, is_looked_at};
use super::by_block::{Act, ByBlock, all_agree};

/// Words of a thread that are looked at.
const MOST_WORDS: usize = 1 << 12;

/// How many instructions that change a word are told apart.
const MOST_PLACES: usize = 16;

/// What an instruction may do to such a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Does {
    /// The code looks at what it found, else it only changes the word.
    decides: bool,
    step: Step,
    is_atomic: bool,
    /// The word's address, where it stands in the code, or how it is found.
    place: Option<u64>,
    at: Option<At>,
    size: u16,
}

/// Base, index, by how much the index counts, and how far from there.
type At = (Option<Register>, Option<Register>, u8, i64);

/// Where the word goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A number is exchanged for itself without some bits, or for a smaller one.
    Down,
    /// A number is added.
    Up,
    Other,
}

/// What the instruction of this number may do, whose address is recorded or not.
pub(super) fn does(code: &[Option<Instruction>], number: usize, is_recorded: bool) -> Option<Does> {
    let one = code[number]?;
    let memory = one.address().filter(|memory| one.is_atomic() || !memory.is_local())?;
    if !one.memory().iter().any(|memory| memory.access.writes) {
        return None;
    }
    let is_atomic = one.is_atomic();
    let is_seen = is_recorded || one.place().is_some();
    if !is_seen || !is_atomic && (one.kind() != Kind::Plain || one.is_of_stack()) {
        return None;
    }
    let [base, index] = [memory.base, memory.index].map(|part| part.map(|part| part.register));
    let at = one.place().is_none().then_some((base, index, memory.scale, memory.displacement));
    let decides = is_atomic && (one.operation() == Operation::CompareExchange || is_looked_at(code, number, one));
    let step = if decides { step(code, number, one) } else { Step::Other };
    Some(Does { decides, step, is_atomic, place: one.place(), at, size: memory.size })
}

fn step(code: &[Option<Instruction>], number: usize, one: Instruction) -> Step {
    let Some(register) = one.register(1).map(|part| part.register) else { return Step::Other };
    match one.operation() {
        Operation::ExchangeAdd if constant(code, number, register, None).is_none_or(|by| by > 0) => Step::Up,
        Operation::CompareExchange => {
            let writes = |before: &Instruction| before.writes() & register.bit() != 0;
            let writer = code[..number].iter().rev().map_while(|before| *before).find(writes);
            let is_down = |writer: Instruction| match writer.operation() {
                Operation::And | Operation::Subtract => true,
                _ => adds(writer).is_some_and(|(_, by)| by < 0),
            };
            if writer.is_some_and(is_down) { Step::Down } else { Step::Other }
        }
        _ => Step::Other,
    }
}

/// Which of all such instructions are looked at: plain ones where some atomic one finds its word alike. In a trace with
/// addresses most others would be, too.
pub(super) fn keep(all: &mut ByBlock<Does>) {
    all.keep_if_any(|one| one.decides);
    let atomic: Vec<Does> = all.acts.iter().map(|act| act.does).filter(|does| does.is_atomic).collect();
    let places: FxHashSet<(u64, u16)> = atomic.iter().filter_map(|one| Some((one.place?, one.size))).collect();
    let ats: FxHashSet<(At, u16)> = atomic.iter().filter_map(|one| Some((one.at?, one.size))).collect();
    let is_alike = |one: &Does| {
        let by_place = one.place.is_some_and(|place| places.contains(&(place, one.size)));
        by_place || one.at.is_some_and(|at| ats.contains(&(at, one.size)))
    };
    all.retain(|one| one.is_atomic || is_alike(one));
}

/// What a thread does with a word.
#[derive(Clone, Debug, Default)]
struct Use {
    size: u16,
    /// It has looked so, and not changed the word since.
    looked: Option<(Pc, Step)>,
    /// What looked and changed it.
    undoes: Option<Pc>,
    /// What changed the word after a look, and what did without one.
    undone: FxHashSet<Pc>,
    strays: FxHashSet<Pc>,
}

/// What a thread does with words that may be locks.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    words: FxHashMap<u64, Use>,
}

impl Uses {
    /// The thread runs so many instructions of a block that may act on such words, with these addresses.
    pub fn block(&mut self, acts: &Acts, block: (BlockId, usize), addresses: &[u64]) {
        for (Act { pc, does, .. }, recorded) in acts.undone.ran(block, addresses) {
            let Some(word) = recorded.or(does.place) else { continue };
            if does.decides && self.words.len() < MOST_WORDS {
                self.words.entry(word).or_default();
            }
            let Some(used) = self.words.get_mut(&word).filter(|used| does.decides || used.size == does.size) else {
                continue;
            };
            let undoes = match (used.looked, does.step) {
                _ if !does.decides => true,
                (Some((_, Step::Down)), Step::Up) => true,
                (Some((by, Step::Other)), Step::Down) => by != *pc,
                _ => false,
            };
            if undoes {
                let those = if used.looked.take().is_some() { &mut used.undone } else { &mut used.strays };
                if those.len() < MOST_PLACES {
                    those.insert(*pc);
                }
                used.undoes = does.decides.then_some(*pc);
            } else if used.looked.is_some() || used.undoes != Some(*pc) {
                // Else it tries again to change it back.
                (used.size, used.looked) = (does.size, Some((*pc, does.step)));
            }
        }
    }
}

/// The words that several threads look at and change again each time.
pub(super) fn doubtful<'a>(threads: impl Iterator<Item = &'a Uses>) -> FxHashSet<u64> {
    // What adds to a word again and again undoes nothing.
    let undoes = |used: &Use| used.looked.is_none() && !used.undone.is_empty() && used.undone.is_disjoint(&used.strays);
    all_agree(threads.flat_map(|thread| &thread.words).map(|(word, used)| (*word, undoes(used))))
}

#[cfg(test)]
mod tests {
    use machine::Table;

    use super::*;

    fn decides(bytes: &[u8]) -> Option<bool> {
        let table = Table::row(Pc(0x100), bytes);
        let code: Vec<_> = table.all().iter().collect();
        does(&code, 0, true).map(|does| does.decides)
    }

    #[test]
    fn what_an_atomic_instruction_finds_decides_where_it_is_looked_at() {
        assert_eq!(decides(&[0xf0, 0x0f, 0xb1, 0x0f]), Some(true), "lock cmpxchg [rdi], ecx");
        assert_eq!(decides(&[0xf0, 0xfe, 0x0f, 0x78, 0x05]), Some(true), "lock dec byte [rdi]; js");
        assert_eq!(
            decides(&[0xf0, 0xff, 0x0f, 0x85, 0xc0, 0x75, 0x05]),
            Some(false),
            "lock dec [rdi]; test eax, eax; jne"
        );
        assert_eq!(
            decides(&[0xf0, 0x0f, 0xc1, 0x17, 0x85, 0xd2, 0x75, 5]),
            Some(true),
            "lock xadd; test edx, edx; jne"
        );
        assert_eq!(decides(&[0xf0, 0x0f, 0xc1, 0x17, 0x89, 0xc2, 0xc3]), Some(false), "lock xadd; mov edx, eax; ret");
        assert_eq!(decides(&[0xf0, 0x0f, 0xc1, 0x17, 0xeb, 5]), Some(true), "lock xadd; jmp: who asks for it looks");
        assert_eq!(decides(&[0x89, 0x0f]), Some(false), "mov [rdi], ecx");
        assert_eq!(decides(&[0x8b, 0x0f]), None, "mov ecx, [rdi]");
        assert_eq!(decides(&[0x89, 0x4d, 0xf8]), None, "mov [rbp-8], ecx");
        let table = Table::row(Pc(0x100), &[0x89, 0x0f]);
        assert!(does(&table.all().iter().collect::<Vec<_>>(), 0, false).is_none(), "nobody knows where");
    }

    #[test]
    fn what_is_exchanged_may_count_down_and_what_is_added_up() {
        let step = |bytes: &[u8]| {
            let table = Table::row(Pc(0x100), bytes);
            let code: Vec<_> = table.all().iter().collect();
            does(&code, code.len() - 2, true).unwrap().step
        };
        let exchanged = |before: &[u8]| step(&[before, &[0xf0, 0x0f, 0xb1, 0x17, 0x75, 0xf8]].concat());
        assert_eq!(exchanged(&[0x89, 0xc2, 0x83, 0xe2, 0xfe]), Step::Down, "mov edx, eax; and edx, -2");
        assert_eq!(exchanged(&[0x8d, 0x50, 0xff]), Step::Down, "lea edx, [rax-1]");
        assert_eq!(exchanged(&[0x8d, 0x50, 0x01]), Step::Other, "lea edx, [rax+1]");
        let added = |number| step(&[0xba, number, 0, 0, 0, 0xf0, 0x0f, 0xc1, 0x17, 0x85, 0xd2]);
        assert_eq!(added(1), Step::Up, "mov edx, 1; lock xadd [rdi], edx; test edx, edx");
        assert_eq!(added(0), Step::Other);
    }

    #[test]
    fn several_threads_look_and_change_it_again_each_time() {
        let used = |undone: &[u64], strays: &[u64], has_looked: bool| {
            let looked = has_looked.then_some((Pc(1), Step::Other));
            let [undone, strays] = [undone, strays].map(|pcs| pcs.iter().copied().map(Pc).collect());
            let used = Use { undone, strays, looked, ..Use::default() };
            Uses { words: [(64, used)].into_iter().collect() }
        };
        let are = |threads: &[Uses]| doubtful(threads.iter()).contains(&64);
        let good = used(&[2], &[3], false);
        assert!(are(&[good.clone(), good.clone()]));
        assert!(!are(std::slice::from_ref(&good)), "nobody else");
        assert!(
            !are(&[good.clone(), used(&[2], &[], true)]),
            "one looks last, as who counts references, or takes work"
        );
        assert!(!are(&[good.clone(), used(&[2], &[2], false)]), "one changes it again and again, as who adds up");
        assert!(!are(&[good, used(&[], &[3], false)]));
    }
}
