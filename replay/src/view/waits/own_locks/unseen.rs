//! Words that may be locks, which a plain store gives back whose address nobody recorded.
//!
//! ```text
//! lock cmpxchg [rbx+24], ecx      what it finds decides where the thread goes
//! …
//! mov [rbx+24], edx               as many bytes, by the same register and distance: once each time
//! mov dword [rdi], -1             or it puts the number that `cmpxchg` expected; so may `xchg` and `cmpxchg`
//! ```
//!
//! A thread that tries again looks once: from its first try on. Each of at least two threads that look at the word must
//! store so, just once, before it looks again, and none may store so at another time.

use machine::{Instruction, Operand, Operation, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, Kind, Pc};

use super::super::values::adds;
use super::acts::{Acts, constant, is_looked_at};
use super::by_block::{Act, ByBlock, Since, all_agree};
use crate::waiting::Code;

/// Words of a thread that are looked at, and of them, those that wait for a store.
const MOST_WORDS: usize = 1 << 12;
const MOST_OPEN: usize = 8;

/// What an instruction may do to such a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Does {
    /// What it finds decides where the thread goes.
    looks: bool,
    is_atomic: bool,
    /// What it expects and what it puts, if the code says so and it is not 0: locks that are free at 0 have a form of
    /// their own.
    expects: Option<i64>,
    puts: Option<i64>,
    /// How it finds the word.
    at: At,
    size: u16,
}

/// How a word is found: base, index, by how much the index counts, and how far from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct At {
    base: Option<Register>,
    index: Option<Register>,
    scale: u8,
    distance: i64,
    /// The base is that of a variable of the function, so far from there, which holds the address.
    variable: Option<i64>,
    /// What wrote these registers last, in the order of the function's code; none, if nothing did.
    made: Option<Pc>,
}

impl Does {
    /// Whether it may give back the word at which that looked: by what it puts, or a store by where it puts it.
    fn gives(&self, looks: &Does) -> bool {
        let is_back = self.puts.is_some() && self.puts == looks.expects;
        let is_there = || !self.is_atomic && self.at == looks.at && self.at.base.is_some();
        self.size == looks.size && (is_back || is_there())
    }
}

/// What the instruction of this number may do, whose address is recorded or not.
pub(super) fn does(
    code: &[Option<Instruction>],
    number: usize,
    is_recorded: bool,
    leading: Option<&Code>,
) -> Option<Does> {
    let one = code[number].filter(|one| is_recorded || !one.is_atomic() && one.place().is_none())?;
    let is_atomic = one.is_atomic();
    let memory = one.address().filter(|memory| is_atomic || !memory.is_local())?;
    let unused = 64 - 8 * u32::from(memory.size.clamp(1, 8));
    let number_of = |number: Option<i64>| number.map(|number| number << unused >> unused).filter(|number| *number != 0);
    let number_in = |register| number_of(constant(code, number, register, leading));
    let compares = one.operation() == Operation::CompareExchange;
    let puts = match (one.operation(), one.operand(1)) {
        (Operation::Move, Operand::Constant(put)) => number_of(Some(put)),
        (Operation::Exchange | Operation::CompareExchange, Operand::Register(part)) => number_in(part.register),
        _ => None,
    };
    let looks = is_atomic && (compares || is_looked_at(code, number, one));
    let writes = || one.memory().iter().any(|memory| memory.access.writes);
    let stores = !is_atomic && one.kind() == Kind::Plain && !one.is_of_stack() && writes();
    if !looks && !stores && puts.is_none() {
        return None;
    }
    let expects = compares.then(|| number_in(Register::AX)).flatten();
    let [base, index] = [memory.base, memory.index].map(|part| part.map(|part| part.register));
    let at = At { base, index, scale: memory.scale, distance: memory.displacement, variable: None, made: None };
    Some(Does { looks, is_atomic, expects, puts, at, size: memory.size })
}

/// How far back an instruction is looked for that made a register, in bytes of code.
const MOST_BYTES: u64 = 4096;

/// Keeps what may give back a word at which some instruction looks. All the program's code, in any order, tells how
/// words are found: where a register was written in between, it is another.
pub(super) fn settle<'a, I: Iterator<Item = Instruction<'a>>>(all: &mut ByBlock<Does>, code: impl Fn() -> I) {
    let looks: Vec<Does> = all.acts.iter().map(|act| act.does).filter(|does| does.looks).collect();
    let sizes: FxHashSet<u16> = looks.iter().map(|does| does.size).collect();
    let numbers: FxHashSet<(i64, u16)> = looks.iter().filter_map(|does| Some((does.expects?, does.size))).collect();
    let is_back = |does: &Does| does.puts.is_some_and(|puts| numbers.contains(&(puts, does.size)));
    all.retain(|does| does.looks || is_back(does) || !does.is_atomic && sizes.contains(&does.size));
    all.keep_if_any(|does| !does.looks || is_back(does));
    if all.is_empty() {
        return;
    }
    let before = Before::new(all.acts.iter().map(|act| act.pc).collect(), code());
    for act in &mut all.acts {
        act.does.at = before.found(act.pc, act.does.at);
    }
    let looks = all.acts.iter().map(|act| act.does).filter(|does| does.looks && does.at.base.is_some());
    let places: FxHashSet<(At, u16)> = looks.map(|does| (does.at, does.size)).collect();
    let gives = |does: &Does| is_back(does) || !does.is_atomic && places.contains(&(does.at, does.size));
    all.retain(|does| does.looks || gives(does));
    all.keep_if_any(gives);
}

/// How many copies are followed.
const MOST_COPIES: usize = 16;

/// The code in front of some instructions, in its order.
struct Before<'a>(Vec<Line<'a>>);

struct Line<'a> {
    pc: Pc,
    writes: u128,
    is_return: bool,
    is_variable: bool,
    instruction: Instruction<'a>,
}

impl<'a> Before<'a> {
    fn new(mut those: Vec<Pc>, code: impl Iterator<Item = Instruction<'a>>) -> Before<'a> {
        those.sort_unstable();
        let leads = |pc: Pc| {
            let next = those.get(those.partition_point(|one| *one < pc));
            next.is_some_and(|next| next.0 - pc.0 < MOST_BYTES)
        };
        let line = |instruction: Instruction<'a>| {
            let is_variable = instruction.address().is_some_and(|memory| memory.is_local())
                && instruction.operand(0) == Operand::Memory
                && instruction.operation() == Operation::Move;
            let (pc, writes) = (instruction.pc(), instruction.writes());
            Line { pc, writes, is_return: instruction.kind() == Kind::Return, is_variable, instruction }
        };
        let mut lines: Vec<_> = code.filter(|one| leads(one.pc())).map(line).collect();
        lines.sort_unstable_by_key(|line| line.pc);
        lines.dedup_by_key(|line| line.pc);
        Before(lines)
    }

    /// How the instruction there finds its word, through copies of registers and variables of the function.
    fn found(&self, mut pc: Pc, mut at: At) -> At {
        for _ in 0..MOST_COPIES {
            let function = self.0[..self.0.partition_point(|line| line.pc < pc)].iter().rev();
            let bits = [at.base, at.index].into_iter().flatten().fold(0, |bits, part| bits | part.bit());
            let is_written = |line: &&Line| match at.variable {
                Some(_) => line.is_variable && at.is_variable_of(line.instruction),
                None => line.writes & bits != 0,
            };
            let mut near = function.take_while(|line| !line.is_return && pc.0 - line.pc.0 < MOST_BYTES);
            let Some(made) = near.find(is_written) else { break };
            at.made = Some(made.pc);
            let Some(from) = at.before(made.instruction) else { break };
            (pc, at) = (made.pc, from);
        }
        at
    }
}

impl At {
    /// Whether the instruction accesses the variable.
    fn is_variable_of(self, one: Instruction) -> bool {
        let is_it = |memory: &machine::Memory| {
            Some(memory.displacement) == self.variable && memory.base.map(|base| base.register) == self.base
        };
        one.address().is_some_and(|memory| is_it(&memory))
    }

    /// How it was found before this instruction, if that only copies.
    fn before(self, one: Instruction) -> Option<At> {
        let (from, by) = match (one.operation(), one.operand(1)) {
            (Operation::Move, from) => (from, 0),
            _ => adds(one)?,
        };
        let (base, variable) = match from {
            Operand::Register(from) => (from.register, None),
            Operand::Memory if self.variable.is_none() => {
                let memory = one.address().filter(machine::Memory::is_local)?;
                (memory.base?.register, Some(memory.displacement))
            }
            _ => return None,
        };
        let is_alone = self.index.is_none();
        is_alone.then_some(At {
            base: Some(base),
            variable,
            distance: self.distance.wrapping_add(by),
            made: None,
            ..self
        })
    }
}

/// What a thread does with a word.
#[derive(Clone, Debug)]
struct Use {
    looks: Does,
    /// What looked last, and the stores since.
    by: Pc,
    stores: Since<Pc>,
    /// By what looked: the stores that were run just once each time.
    once: FxHashMap<Pc, Vec<Pc>>,
}

impl Use {
    fn end(&mut self) {
        let once = self.stores.once(self.once.get(&self.by));
        self.once.insert(self.by, once);
    }

    fn awaits(&self, act: &Act<Does>) -> bool {
        act.does.gives(&self.looks) && self.stores.0.iter().all(|(pc, _)| *pc != act.pc)
    }
}

/// What a thread does with words that may be given so.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    words: FxHashMap<u64, Use>,
    /// Words at which it has looked, the last one last.
    open: Vec<u64>,
    /// Stores that it has run while no word waited for them, as who fills memory does.
    strays: FxHashSet<Pc>,
}

impl Uses {
    /// The thread runs so many instructions of a block that may act on such words, with these addresses.
    pub fn block(&mut self, acts: &Acts, block: (BlockId, usize), addresses: &[u64]) {
        for (act, recorded) in acts.unseen.ran(block, addresses) {
            match recorded {
                Some(word) => match self.words.get_mut(&word) {
                    Some(used) if act.does.gives(&used.looks) => used.stores.does(act.pc),
                    _ if act.does.looks => self.look(word, act),
                    _ => {}
                },
                None => self.store(act),
            }
        }
    }

    fn look(&mut self, word: u64, act: &Act<Does>) {
        if let Some(used) = self.words.get_mut(&word) {
            if used.stores.0.is_empty() && self.open.contains(&word) {
                return;
            }
            used.end();
            (used.looks, used.by) = (act.does, act.pc);
        } else if self.words.len() < MOST_WORDS {
            let (stores, once) = Default::default();
            self.words.insert(word, Use { looks: act.does, by: act.pc, stores, once });
        } else {
            return;
        }
        self.open.retain(|open| *open != word);
        if self.open.len() == MOST_OPEN {
            self.open.remove(0);
        }
        self.open.push(word);
    }

    fn store(&mut self, act: &Act<Does>) {
        let awaits = |word: &&u64| self.words[*word].awaits(act);
        match self.open.iter().rev().find(awaits).and_then(|word| self.words.get_mut(word)) {
            Some(used) => used.stores.does(act.pc),
            None => _ = self.strays.insert(act.pc),
        }
    }

    /// The thread ends.
    pub fn end(&mut self) {
        self.words.values_mut().for_each(Use::end);
    }
}

/// The words that several threads look at and store to each time.
pub(super) fn doubtful<'a>(threads: impl Iterator<Item = &'a Uses> + Clone) -> FxHashSet<u64> {
    let strays: FxHashSet<Pc> = threads.clone().flat_map(|thread| &thread.strays).copied().collect();
    let gives = |used: &Use| used.once.values().all(|once| once.iter().any(|pc| !strays.contains(pc)));
    all_agree(threads.flat_map(|thread| &thread.words).map(|(word, used)| (*word, gives(used))))
}

#[cfg(test)]
mod tests {
    use machine::Table;

    use super::*;

    const OWNER: Pc = Pc(0x100);

    /// What the instruction behind the others of these bytes does.
    fn last(bytes: &[u8], is_recorded: bool) -> Option<Does> {
        let table = Table::row(OWNER, bytes);
        let code: Vec<_> = table.all().iter().collect();
        does(&code, code.len() - 1, is_recorded, None)
    }

    #[test]
    fn a_word_is_given_by_the_number_that_was_expected_or_by_how_it_was_found() {
        // mov eax, -1; lock cmpxchg [rbx+24], ecx
        let looks = last(&[0xb8, 0xff, 0xff, 0xff, 0xff, 0xf0, 0x0f, 0xb1, 0x4b, 0x18], true).unwrap();
        assert!(looks.looks && looks.expects == Some(-1));
        let gives = |bytes: &[u8], is_recorded| last(bytes, is_recorded).is_some_and(|does| does.gives(&looks));
        assert!(gives(&[0xc7, 0x07, 0xff, 0xff, 0xff, 0xff], false), "mov dword [rdi], -1");
        assert!(!gives(&[0xc7, 0x07, 1, 0, 0, 0], false), "mov dword [rdi], 1");
        assert!(gives(&[0x89, 0x53, 0x18], false), "mov [rbx+24], edx");
        assert!(gives(&[0xff, 0x43, 0x18], false), "inc dword [rbx+24]");
        assert!(!gives(&[0x48, 0x89, 0x53, 0x18], false), "mov [rbx+24], rdx");
        assert!(!gives(&[0x8b, 0x53, 0x18], false), "mov edx, [rbx+24]");
        assert!(!gives(&[0x89, 0x57, 0x18], false), "mov [rdi+24], edx");
        assert!(gives(&[0xba, 0xff, 0xff, 0xff, 0xff, 0x87, 0x17], true), "mov edx, -1; xchg [rdi], edx");
        assert!(!gives(&[0x87, 0x53, 0x18], true), "xchg [rbx+24], edx");
    }

    /// How the last of these instructions finds its word.
    fn found(bytes: &[u8]) -> At {
        let table = Table::row(OWNER, bytes);
        let code: Vec<_> = table.all().iter().flatten().collect();
        let pc = code[code.len() - 1].pc();
        Before::new(vec![pc], code.into_iter()).found(pc, last(bytes, false).unwrap().at)
    }

    #[test]
    fn a_word_is_found_through_copies() {
        let rdi = found(&[0x89, 0x57, 0x18]);
        assert!(rdi.made.is_none() && rdi.distance == 24, "mov [rdi+24], edx");
        assert_eq!(found(&[0x48, 0x89, 0xfb, 0x89, 0x53, 0x18]), rdi, "mov rbx, rdi; mov [rbx+24], edx");
        assert_eq!(found(&[0x48, 0x8d, 0x5f, 0x18, 0x89, 0x13]), rdi, "lea rbx, [rdi+24]; mov [rbx], edx");
        let by_variable = [0x48, 0x89, 0x7d, 0xf8, 0x48, 0x8b, 0x45, 0xf8, 0x48, 0x83, 0xc0, 0x18, 0x89, 0x10];
        assert_eq!(found(&by_variable), rdi, "mov [rbp-8], rdi; mov rax, [rbp-8]; add rax, 24; mov [rax], edx");
        let loaded = found(&[0x48, 0x8b, 0x7f, 0x10, 0x89, 0x57, 0x18]);
        assert!(loaded != rdi && loaded.made == Some(OWNER), "mov rdi, [rdi+16]; mov [rdi+24], edx");
        assert_eq!(found(&[0x48, 0x89, 0xfb, 0xc3, 0x89, 0x57, 0x18]), rdi, "mov rbx, rdi; ret; mov [rdi+24], edx");
    }

    #[test]
    fn each_thread_stores_just_once_before_it_looks_again() {
        let act = |pc: u64, looks: bool| {
            let at = At { base: Some(Register::AX), index: None, scale: 1, distance: 24, variable: None, made: None };
            let does = Does { looks, is_atomic: looks, expects: None, puts: None, at, size: 4 };
            Act { pc: Pc(pc), number: 0, does, recorded: None }
        };
        // What looks by a number below 10; the others store.
        let thread = |pcs: &[u64]| {
            let mut uses = Uses::default();
            for pc in pcs {
                if *pc < 10 { uses.look(64, &act(*pc, true)) } else { uses.store(&act(*pc, false)) }
            }
            uses.end();
            uses
        };
        let are = |threads: &[Uses]| doubtful(threads.iter()).contains(&64);
        let good = thread(&[1, 1, 11, 1, 11]);
        assert!(are(&[good.clone(), thread(&[1, 11, 2, 12])]), "an inlined lock is given at each place by another");
        assert!(!are(std::slice::from_ref(&good)), "nobody else");
        assert!(!are(&[good.clone(), thread(&[1, 11, 1])]), "it looks last");
        assert!(!are(&[good.clone(), thread(&[1, 11, 11])]), "it stores again");
        assert!(!are(&[good.clone(), thread(&[1, 11, 1, 12])]), "now this store and now that");
        assert!(!are(&[good.clone(), good, thread(&[11])]), "somebody stores so and has not looked");
    }
}
