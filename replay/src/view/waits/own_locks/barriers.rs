//! Barriers that a program builds from an atomic count: all but the last thread wait, the last lets them go.
//!
//! ```text
//! if (++arrived == n) { arrived = 0; generation++; } else while (generation == mine) sched_yield();
//! ```
//!
//! What threads do at the word that they count, the k-th time each, is a *round*. The word is a barrier's where all
//! threads that count there do so equally often, and go one of two ways at the next branch, one of them in each round
//! the way on which none waits soon, the others the way on which some do. Of a few rounds that may be chance: who takes
//! a lock first does not wait, either. It is a barrier's, too, where all threads look at the word itself until
//! they find what they wait for:
//!
//! ```text
//! arrived++; while (arrived < n) sched_yield();
//! ```

use machine::{Instruction, Operation};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, Kind, Pc};

use super::super::values::adds;
use super::acts::Acts;

/// What a block does to memory.
pub(super) struct Looks {
    /// It loads from there and stores nowhere, except in the frame.
    only: bool,
    /// The addresses in its code from which it loads.
    at: Box<[u64]>,
}

impl Looks {
    pub fn of(code: &[Option<Instruction>]) -> Looks {
        let code = || code.iter().copied().flatten();
        let memory = || code().flat_map(|one| one.memory().iter().filter(|memory| !memory.is_local()));
        let only = memory().any(|memory| memory.access.reads) && !memory().any(|memory| memory.access.writes);
        let looks = code().filter(|one| !one.is_atomic() && one.memory().iter().all(|memory| !memory.access.writes));
        Looks { only, at: looks.filter_map(Instruction::place).collect() }
    }
}

/// Whether an atomic instruction counts.
pub(super) fn counts(one: Instruction) -> bool {
    one.operation() == Operation::ExchangeAdd || adds(one).is_some_and(|(_, by)| by.abs() == 1)
}

/// How many blocks a thread runs at most until it is seen to wait.
const SOON: u32 = 64;

/// How often a block is run in that time by a thread that waits in a loop of which it is a part.
const OFTEN: u32 = 3;

/// Words of a thread that are looked at, and how often it counts there.
const MOST_WORDS: usize = 1 << 10;
const MOST_VISITS: usize = 1 << 16;

/// How many rounds a barrier has at least, and one of two threads: of them one often waits by chance.
const LEAST: usize = 3;
const LEAST_OF_TWO: usize = 8;

/// A thread counts at a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Visit {
    /// Where the next branch led.
    way: Option<Pc>,
    waits: bool,
    /// How often the thread has looked at the word since: at most twice.
    looks: u8,
}

/// What a thread does at words that it counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    visits: FxHashMap<u64, Vec<Visit>>,
    /// What counts there.
    pcs: FxHashMap<u64, FxHashSet<Pc>>,
    /// The word at which it has counted last, and how many blocks it may still run until it waits.
    at: Option<(u64, u32)>,
    /// The next branch has not come yet; it was the end of the last block.
    awaits_branch: bool,
    awaits_way: bool,
    ran: FxHashMap<BlockId, u32>,
}

impl Uses {
    /// The thread runs so many instructions of a block, with these addresses.
    pub fn ran(&mut self, acts: &Acts, (block, executed): (BlockId, usize), addresses: Option<&[u64]>) {
        if self.at.is_none() && !acts.counts.has(block) {
            return;
        }
        let instructions = &acts.blocks[block].instructions[..executed];
        if let Some((word, left)) = self.at {
            self.at = Some((word, left - 1)).filter(|_| left > 1);
            if acts.looks[block.index()].at.contains(&word)
                && let Some(visit) = self.last(word)
            {
                visit.looks = (visit.looks + 1).min(2);
            }
            let times = self.ran.entry(block).or_default();
            *times += 1;
            let is_turn = *times == OFTEN && acts.looks[block.index()].only;
            self.follow(word, instructions);
            if is_turn || instructions.iter().any(|one| one.kind == Kind::Pause) {
                self.waits();
            }
        }
        for (act, word) in acts.counts.ran((block, executed), addresses.unwrap_or(&[])) {
            let Some(word) = word else { continue };
            if self.visits.len() == MOST_WORDS && !self.visits.contains_key(&word) {
                continue;
            }
            let from = act.number + 1;
            let visits = self.visits.entry(word).or_default();
            if visits.len() < MOST_VISITS {
                visits.push(Visit::default());
            }
            self.pcs.entry(word).or_default().insert(act.pc);
            (self.at, self.awaits_branch, self.awaits_way) = (Some((word, SOON)), true, false);
            self.ran.clear();
            self.follow(word, &instructions[from..]);
        }
    }

    /// The thread runs these instructions behind one that counts.
    fn follow(&mut self, word: u64, instructions: &[trace_format::Instruction]) {
        let mut way = instructions.first().filter(|_| std::mem::take(&mut self.awaits_way)).map(|first| first.pc);
        if self.awaits_branch
            && let Some(branch) = instructions.iter().position(|one| one.kind == Kind::Branch)
        {
            self.awaits_branch = false;
            way = instructions.get(branch + 1).map(|next| next.pc);
            self.awaits_way = way.is_none();
        }
        if let Some(visit) = self.last(word).filter(|_| way.is_some()) {
            visit.way = way;
        }
    }

    fn last(&mut self, word: u64) -> Option<&mut Visit> {
        self.visits.get_mut(&word)?.last_mut()
    }

    /// The thread waits: in the kernel, or since it yields.
    pub fn waits(&mut self) {
        if let Some(visit) = self.at.and_then(|(word, _)| self.last(word)) {
            visit.waits = true;
        }
    }

    /// The thread does something else.
    pub fn goes_away(&mut self) {
        self.at = None;
    }
}

/// The words that are barriers': how often threads meet there, and what counts.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct Barriers {
    pub rounds: FxHashMap<u64, usize>,
    pub pcs: FxHashSet<Pc>,
}

impl Barriers {
    /// Of words that are no locks.
    pub(super) fn new<'a>(threads: impl Iterator<Item = &'a Uses>, is_lock: impl Fn(u64) -> bool) -> Barriers {
        let mut of_word: FxHashMap<u64, Vec<&'a Uses>> = FxHashMap::default();
        for thread in threads {
            thread.visits.keys().for_each(|word| of_word.entry(*word).or_default().push(thread));
        }
        let mut all = Barriers::default();
        for (word, uses) in of_word.into_iter().filter(|(word, _)| !is_lock(*word)) {
            let visits: Vec<&[Visit]> = uses.iter().map(|used| &used.visits[&word][..]).collect();
            if are_rounds(&visits) {
                all.rounds.insert(word, visits[0].len());
                all.pcs.extend(uses.iter().flat_map(|used| &used.pcs[&word]));
            }
        }
        all
    }
}

/// Whether threads meet that visit a word so.
fn are_rounds(threads: &[&[Visit]]) -> bool {
    let rounds = threads[0].len();
    let all = || threads.iter().flat_map(|visits| visits.iter());
    let ways: FxHashSet<Option<Pc>> = all().map(|visit| visit.way).collect();
    let all_look = || all().all(|visit| visit.looks > 0) && all().any(|visit| visit.looks > 1 && visit.waits);
    let is_equal = threads.len() > 1 && rounds < MOST_VISITS && threads.iter().all(|visits| visits.len() == rounds);
    if !is_equal || all_look() {
        return is_equal;
    }
    let least = if threads.len() == 2 { LEAST_OF_TWO } else { LEAST };
    let is_last = |way: &Pc| {
        let goes = |visit: &&Visit| visit.way == Some(*way);
        (0..rounds).all(|round| threads.iter().filter(|visits| goes(&&visits[round])).count() == 1)
            && !all().filter(goes).any(|visit| visit.waits)
            && all().any(|visit| visit.waits)
    };
    rounds >= least && ways.len() == 2 && ways.iter().all(Option::is_some) && ways.iter().flatten().any(is_last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: Visit = Visit { way: Some(Pc(1)), waits: false, looks: 0 };
    const WAITS: Visit = Visit { way: Some(Pc(2)), waits: true, looks: 0 };
    const FINDS_IT_OVER: Visit = Visit { way: Some(Pc(2)), waits: false, looks: 0 };

    #[test]
    fn one_in_each_round_lets_the_others_go() {
        let first = [WAITS, LAST, WAITS];
        assert!(are_rounds(&[&first, &[LAST, WAITS, WAITS], &[WAITS, FINDS_IT_OVER, LAST]]));
        // Nobody goes the way of the last and waits.
        assert!(!are_rounds(&[&first, &[LAST, WAITS, WAITS], &[WAITS, WAITS, Visit { waits: true, ..LAST }]]));
        // Somebody has to wait.
        let [last, over] = [LAST, FINDS_IT_OVER];
        assert!(!are_rounds(&[&[last, over, over], &[over, last, over], &[over, over, last]]));
    }

    #[test]
    fn a_count_of_what_is_left_to_do_is_none() {
        // Who counts how often depends on who comes first.
        assert!(!are_rounds(&[&[WAITS; 3], &[LAST; 3], &[WAITS; 2]]));
        assert!(!are_rounds(&[&[LAST, LAST, WAITS], &[WAITS, LAST, WAITS], &[WAITS, WAITS, LAST]]));
        assert!(!are_rounds(&[&[LAST, WAITS, LAST]]));
    }

    #[test]
    fn all_may_look_at_the_count_until_all_have_come() {
        let look = |looks| Visit { looks, ..WAITS };
        assert!(are_rounds(&[&[look(1)], &[look(2)]]));
        assert!(!are_rounds(&[&[look(1)], &[look(1)]]), "nobody had to wait");
        assert!(!are_rounds(&[&[look(2)], &[look(0)]]), "one does not look");
    }

    #[test]
    fn few_rounds_may_be_chance() {
        assert!(!are_rounds(&[&[LAST, WAITS], &[WAITS, LAST], &[WAITS, WAITS]]));
        assert!(!are_rounds(&[&[LAST, WAITS, LAST], &[WAITS, LAST, WAITS]]));
        assert!(are_rounds(&[&[LAST; 8], &[WAITS; 8]]));
    }
}
