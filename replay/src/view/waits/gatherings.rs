//! Barriers that a program builds from a mutex and whatever threads wait for outside of it: flags that they poll,
//! condition variables in two phases.
//!
//! ```text
//! lock(m);
//! if (++here == n) leaving = 1; else { unlock(m); while (!leaving) ; lock(m); }
//! if (--here == 0) leaving = 0;
//! unlock(m);
//! ```
//!
//! A *section* is from where a thread takes the mutex to where it gives it back; the sections up to one that ends at
//! the place in the code where the barrier ends are a *round*. The mutex is a barrier's where all threads that take it
//! end equally many rounds at one place, have no section behind the last, and nobody ends a round before all have begun
//! it. No section of a mutex that only guards data is so: another thread's comes before or behind it.
//!
//! Threads that hand a turn on may do all that, too. So sections are short, as what counts is; the order in which
//! threads leave is not the same each time; and between the sections of a round a thread only waits: it stores nothing
//! outside of its frame, uses no other mutex, and the loops there are such as wait. What it runs there is left out.
//! Threads that use the mutex when others have ended meet among themselves.

use rustc_hash::FxHashMap;
use trace_format::{BlockId, Pc, Seq};

use crate::EpisodeId;
use crate::view::waits::of_block::OfBlock;

/// Mutexes of a thread that are looked at, and how often each.
const MOST_MUTEXES: usize = 1 << 14;
const MOST_SECTIONS: usize = 1 << 16;

/// How many rounds a barrier has at least in all, and one of two threads, which may take turns by chance.
const LEAST: usize = 3;
const LEAST_OF_TWO: usize = 8;

/// How many instructions a thread runs, at most, up to a call that orders threads: in a section; and between two, but
/// for loops that may wait. And how many blocks of a section store something.
const MOST_IN_SECTION: u32 = 128;
const MOST_BETWEEN: u32 = 64;
const MOST_STORES: u32 = 8;

/// Ways to wait between sections that are told apart, and blocks of each.
const MOST_WAYS: usize = 64;
const MOST_LOOPS: usize = 64;

/// A thread has a mutex.
#[derive(Clone, Copy, Debug)]
struct Section {
    from: Seq,
    to: Seq,
    /// The call that gave it back; none where nothing was called before.
    by: Option<Pc>,
    /// Which loops, at most, the thread ran since the section before: a number in [`Sections::ways`]; none where it
    /// worked.
    behind: Option<u32>,
    /// It does no more than count.
    is_short: bool,
}

/// A mutex that the thread has.
#[derive(Clone, Copy, Debug)]
struct Open {
    mutex: u64,
    from: Seq,
    behind: Option<u32>,
    /// How much work the thread had done.
    work: u32,
}

/// The sections of a thread.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct Sections {
    of_mutex: FxHashMap<u64, Vec<Section>>,
    open: Vec<Open>,
    /// The last call.
    by: Option<Pc>,
    /// The mutex that was given back last, where none was taken or given since, and none is open.
    last: Option<u64>,
    since: Since,
    /// How often, up to then, there was too much for a section.
    work: u32,
    /// The blocks of loops that ran between sections, by number, and whether all of them wait.
    ways: Vec<(Box<[BlockId]>, bool)>,
}

/// What a thread has run since it took or gave a mutex.
#[derive(Clone, Debug, Default)]
struct Since {
    /// Instructions since the last call that orders threads; and those but for such loops.
    instructions: u32,
    outside_loops: u32,
    /// Blocks that store.
    stores: u32,
    /// Blocks that a loop may have that waits, and whether they ran more than once.
    loops: Vec<(BlockId, bool)>,
    /// It is too much for waiting; for a section.
    is_work: bool,
    is_long: bool,
}

impl Sections {
    /// The thread runs a block of the program's own.
    #[inline]
    pub fn runs(&mut self, block: BlockId, of: &OfBlock) {
        if let Some(pc) = of.calls {
            self.by = Some(pc);
        }
        let is_known = match self.open[..] {
            [] => self.since.is_work || self.last.is_none(),
            _ => self.since.is_long,
        };
        // The loader binds a function when it is called first.
        if !is_known && of.of_library.is_some() {
            self.since.runs(block, of);
        }
    }

    /// The thread calls what orders threads, or returns from it.
    pub fn orders(&mut self) {
        (self.since.instructions, self.since.outside_loops) = (0, 0);
        // A loop that makes such a call in each turn waits by it.
        self.since.loops.retain(|(_, again)| *again);
    }

    /// The thread has taken a mutex, given it back, or done nothing to it.
    pub fn act(&mut self, mutex: u64, takes: Option<bool>, seq: Seq) {
        match takes {
            Some(true) => self.takes(mutex, seq),
            Some(false) => self.gives(mutex, seq),
            None => {}
        }
    }

    /// The thread takes a mutex.
    fn takes(&mut self, mutex: u64, seq: Seq) {
        let behind = if self.last == Some(mutex) { self.way() } else { None };
        // A section in another is no counting.
        self.work += u32::from(!self.open.is_empty());
        self.goes_on(None);
        if self.open.iter().all(|open| open.mutex != mutex) {
            self.open.push(Open { mutex, from: seq, behind, work: self.work });
        }
    }

    /// The thread gives a mutex back.
    fn gives(&mut self, mutex: u64, seq: Seq) {
        self.work += u32::from(self.since.is_long);
        let taken = self.open.iter().position(|open| open.mutex == mutex).map(|at| self.open.swap_remove(at));
        let taken = taken.unwrap_or(Open { mutex, from: seq, behind: None, work: self.work });
        self.goes_on(self.open.is_empty().then_some(mutex));
        if self.of_mutex.len() < MOST_MUTEXES || self.of_mutex.contains_key(&mutex) {
            let sections = self.of_mutex.entry(mutex).or_default();
            if sections.len() < MOST_SECTIONS {
                let Open { from, behind, work, .. } = taken;
                sections.push(Section { from, to: seq, by: self.by, behind, is_short: work == self.work });
            }
        }
    }

    fn goes_on(&mut self, last: Option<u64>) {
        let mut loops = std::mem::take(&mut self.since.loops);
        loops.clear();
        self.since = Since { loops, ..Since::default() };
        self.last = last;
    }

    /// The number of the way in which the thread waited; none where it worked.
    fn way(&mut self) -> Option<u32> {
        if self.since.is_work {
            return None;
        }
        let mut loops: Vec<BlockId> =
            self.since.loops.iter().filter(|(_, again)| *again).map(|(block, _)| *block).collect();
        loops.sort_unstable();
        let known = self.ways.iter().position(|(way, _)| **way == *loops);
        let number = known.or_else(|| {
            (self.ways.len() < MOST_WAYS).then(|| {
                self.ways.push((loops.into(), false));
                self.ways.len() - 1
            })
        });
        number.map(|number| number as u32)
    }

    /// Once it is known which blocks loops have that wait.
    pub fn settle(&mut self, waits: impl Fn(BlockId) -> bool) {
        self.ways.iter_mut().for_each(|(loops, wait)| *wait = loops.iter().all(|block| waits(*block)));
    }

    /// Whether the thread only waited before that section, since the one before.
    fn has_waited(&self, section: &Section) -> bool {
        section.behind.is_some_and(|way| self.ways[way as usize].1)
    }
}

impl Since {
    fn runs(&mut self, block: BlockId, of: &OfBlock) {
        if of.stores {
            self.stores += 1;
            self.is_work = true;
        }
        self.instructions += of.length;
        if let Some((_, again)) = self.loops.iter_mut().find(|(one, _)| *one == block) {
            *again = true;
        } else if of.may_wait {
            // A block may have several turns of a loop.
            self.loops.push((block, of.length > MOST_BETWEEN));
        } else {
            self.outside_loops += of.length;
        }
        self.is_work |= self.outside_loops > MOST_BETWEEN || self.loops.len() > MOST_LOOPS;
        self.is_long |= self.instructions > MOST_IN_SECTION || self.stores > MOST_STORES;
    }
}

/// Of a thread, by mutex at which it gathers with others: what it meets each time that it gives it back; none where it
/// waits then, until it takes it again.
pub(in crate::view) type Rounds = FxHashMap<u64, Vec<Option<EpisodeId>>>;

/// Per thread: the barriers of mutexes, except of these.
pub(in crate::view) fn number_gatherings(
    threads: &[&Sections],
    is_known: impl Fn(u64) -> bool,
    next: &mut impl FnMut() -> EpisodeId,
) -> Vec<Rounds> {
    let mut of_mutex: FxHashMap<u64, Generation> = FxHashMap::default();
    for (number, thread) in threads.iter().enumerate() {
        for (mutex, all) in &thread.of_mutex {
            of_mutex.entry(*mutex).or_default().push(User { number, all, thread });
        }
    }
    let mut all: Vec<Rounds> = vec![Rounds::default(); threads.len()];
    let mut of_mutex: Vec<_> = of_mutex.into_iter().filter(|(mutex, _)| !is_known(*mutex)).collect();
    of_mutex.sort_unstable_by_key(|(mutex, _)| *mutex);
    for (mutex, of_threads) in of_mutex {
        let groups = generations(of_threads);
        let Some(found) = groups.iter().map(ends_of_rounds).collect::<Option<Vec<_>>>() else { continue };
        let have_turns = groups.iter().zip(&found).all(|(group, (ends, _))| leave_in_turns(group, ends));
        let least = if groups.iter().all(|group| group.len() == 2) { LEAST_OF_TWO } else { LEAST };
        if have_turns || found.iter().map(|(_, rounds)| rounds).sum::<usize>() < least {
            continue;
        }
        for (group, (ends, rounds)) in groups.iter().zip(found) {
            let episodes: Vec<EpisodeId> = (0..rounds).map(|_| next()).collect();
            for (user, ends) in group.iter().zip(ends) {
                let mut met = vec![None; user.all.len()];
                ends.iter().zip(&episodes).for_each(|(end, episode)| met[*end] = Some(*episode));
                all[user.number].insert(mutex, met);
            }
        }
    }
    all
}

/// A thread that uses a mutex: its number, its sections of it, and what else it does.
#[derive(Clone, Copy)]
struct User<'a> {
    number: usize,
    all: &'a [Section],
    thread: &'a Sections,
}

/// Threads that use a mutex at one time.
type Generation<'a> = Vec<User<'a>>;

/// Those that use it one after another: as each time that a program starts threads anew.
fn generations(mut users: Generation) -> Vec<Generation> {
    users.sort_by_key(|user| user.all[0].from);
    let (mut all, mut until) = (Vec::<Generation>::new(), Seq(0));
    for user in users {
        let (from, to) = (user.all[0].from, user.all[user.all.len() - 1].to);
        match all.last_mut().filter(|_| from < until) {
            Some(generation) => generation.push(user),
            None => all.push(vec![user]),
        }
        until = until.max(to);
    }
    all
}

/// By thread, the sections with which rounds end, and how many there are; none where the mutex is no barrier's.
fn ends_of_rounds(generation: &Generation) -> Option<(Vec<Vec<usize>>, usize)> {
    let by = generation.first()?.all.last()?.by?;
    let is_end = |section: &Section| section.by == Some(by);
    let ends_of = |user: &User| -> Vec<usize> { (0..user.all.len()).filter(|at| is_end(&user.all[*at])).collect() };
    let ends: Vec<Vec<usize>> = generation.iter().map(ends_of).collect();
    let rounds = ends[0].len();
    let is_whole = |(user, ends): (&User, &Vec<usize>)| {
        ends.len() == rounds && ends.last() == Some(&(user.all.len() - 1)) && user.all.len() < MOST_SECTIONS
    };
    let waits = |user: &User| {
        let is_inside = |at: usize| at > 0 && !is_end(&user.all[at - 1]);
        user.all.iter().enumerate().all(|(at, one)| one.is_short && (!is_inside(at) || user.thread.has_waited(one)))
    };
    if generation.len() < 2 || !generation.iter().zip(&ends).all(is_whole) || !generation.iter().all(waits) {
        return None;
    }
    let are_all_there = |round: usize| {
        let of_all = || generation.iter().zip(&ends);
        let begins = of_all().map(|(user, ends)| user.all[if round == 0 { 0 } else { ends[round - 1] + 1 }].from);
        let left = of_all().map(|(user, ends)| user.all[ends[round]].to);
        begins.max() < left.min()
    };
    (0..rounds).all(are_all_there).then_some((ends, rounds))
}

/// Whether threads leave all rounds in one order.
fn leave_in_turns(generation: &Generation, ends: &[Vec<usize>]) -> bool {
    let order = |round: usize| {
        let mut threads: Vec<usize> = (0..generation.len()).collect();
        threads.sort_unstable_by_key(|thread| generation[*thread].all[ends[*thread][round]].to);
        threads
    };
    let first = order(0);
    (1..ends[0].len()).all(|round| order(round) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAVES: Pc = Pc(1);
    const WAITS: Pc = Pc(2);

    const fn block(length: u32, calls: Option<Pc>, stores: bool, may_wait: bool) -> OfBlock {
        OfBlock { length, of_library: Some(false), calls, stores, may_wait }
    }

    /// A block, and its number.
    type Ran = (u32, OfBlock);

    /// What a thread does: takes the mutex, gives it back there, or runs a block.
    #[derive(Clone, Copy)]
    enum Step {
        Takes,
        Gives(Pc),
        Runs(&'static Ran),
    }

    /// What threads of these numbers do in this order. All loops but those of block 1 wait.
    fn threads<const N: usize>(steps: &[(usize, Step)]) -> [Sections; N] {
        let mut all = [const { None }; N].map(|none: Option<Sections>| none.unwrap_or_default());
        for (seq, (thread, step)) in steps.iter().enumerate() {
            let (seq, thread) = (Seq(seq as u64), &mut all[*thread]);
            match step {
                Step::Takes => thread.takes(8, seq),
                Step::Gives(by) => {
                    thread.runs(BlockId(0), &block(1, Some(*by), false, false));
                    thread.gives(8, seq);
                }
                Step::Runs((number, block)) => thread.runs(BlockId(*number), block),
            }
        }
        all.iter_mut().for_each(|thread| thread.settle(|block| block != BlockId(1)));
        all
    }

    fn met<const N: usize>(steps: &[(usize, Step)]) -> Vec<Vec<Option<u32>>> {
        let (all, mut numbers) = (threads::<N>(steps), 0..);
        let all: Vec<&Sections> = all.iter().collect();
        let mut rounds = number_gatherings(&all, |_| false, &mut || EpisodeId(numbers.next().unwrap()));
        let of_thread = |rounds: &mut Rounds| rounds.remove(&8).unwrap_or_default();
        rounds.iter_mut().map(|thread| of_thread(thread).iter().map(|e| e.map(|e| e.0)).collect()).collect()
    }

    /// All but the last of these threads wait, then leave.
    fn round(order: &[usize]) -> Vec<(usize, Step)> {
        let (last, others) = order.split_last().unwrap();
        let both = |thread: &usize, by| [(*thread, Step::Takes), (*thread, Step::Gives(by))];
        let waits = others.iter().flat_map(|thread| both(thread, WAITS));
        let leaves = others.iter().flat_map(|thread| both(thread, LEAVES));
        waits.chain(both(last, LEAVES)).chain(leaves).collect()
    }

    #[test]
    fn threads_that_leave_when_all_have_come_meet() {
        let steps = [round(&[0, 1, 2]), round(&[2, 0, 1]), round(&[1, 2, 0])].concat();
        let (w, all) = (None, met::<3>(&steps));
        assert_eq!(all[0], [w, Some(0), w, Some(1), Some(2)]);
        assert_eq!(all[2], [Some(0), w, Some(1), w, Some(2)]);
        assert_eq!(met::<3>(&steps[..steps.len() - 10]), [[], [], []], "two rounds may be chance");
    }

    #[test]
    fn threads_that_are_started_anew_meet_each_other() {
        let first = [round(&[0, 1, 2]), round(&[2, 0, 1]), round(&[1, 2, 0])].concat();
        let anew = first.iter().map(|(thread, by)| (thread + 3, *by));
        let all = met::<6>(&first.iter().copied().chain(anew).collect::<Vec<_>>());
        assert_eq!(all[0], [None, Some(0), None, Some(1), Some(2)]);
        assert_eq!(all[3], [None, Some(3), None, Some(4), Some(5)]);
        let anew = round(&[3, 4, 5]);
        let all = met::<6>(&first.iter().copied().chain(anew).collect::<Vec<_>>());
        assert_eq!(all[5], [Some(3)], "however few rounds");
    }

    #[test]
    fn a_mutex_that_guards_data_is_no_barriers() {
        let section = |thread| [(thread, Step::Takes), (thread, Step::Gives(LEAVES))];
        let turns: Vec<_> = (0..30).flat_map(|i| section(i % 3)).collect();
        assert!(met::<3>(&turns).concat().is_empty());
        let mut steps = [round(&[0, 1, 2]), round(&[2, 0, 1]), round(&[1, 2, 0])].concat();
        steps.extend(section(1));
        assert!(met::<3>(&steps).concat().is_empty(), "one comes once more");
        steps.truncate(steps.len() - 2);
        steps.extend([(1, Step::Takes), (1, Step::Gives(WAITS))]);
        assert!(met::<3>(&steps).concat().is_empty(), "one has not left");
    }

    #[test]
    fn who_leaves_before_all_have_come_has_met_nobody() {
        let rounds = [round(&[0, 1, 2]), round(&[2, 0, 1])].concat();
        let alone = round(&[1, 2]).into_iter().chain([(0, Step::Takes), (0, Step::Gives(LEAVES))]);
        assert!(met::<3>(&rounds.into_iter().chain(alone).collect::<Vec<_>>()).concat().is_empty());
    }

    #[test]
    fn who_leaves_in_one_order_takes_turns() {
        let steps: Vec<_> = (0..9).flat_map(|_| round(&[0, 1, 2])).collect();
        assert!(met::<3>(&steps).concat().is_empty());
        let steps = [steps, round(&[0, 2, 1])].concat();
        assert_eq!(met::<3>(&steps)[0].iter().flatten().count(), 10);
    }

    /// Three rounds, in which a thread that had, or has not, the mutex runs these blocks.
    fn with(blocks: &[&'static Ran], has: bool) -> usize {
        let mut steps = [round(&[0, 1, 2]), round(&[2, 0, 1]), round(&[1, 2, 0])].concat();
        // Thread 0 takes the mutex, gives it, and takes it again.
        let at = steps.iter().enumerate().filter(|(_, step)| step.0 == 0).nth(if has { 1 } else { 2 }).unwrap().0;
        steps.splice(at..at, blocks.iter().map(|block| (0, Step::Runs(block))));
        met::<3>(&steps)[0].iter().flatten().count()
    }

    #[test]
    fn who_works_meanwhile_does_not_wait() {
        const STORES: Ran = (1, block(3, None, true, false));
        const POLLS: Ran = (1, block(10, None, false, true));
        const WAITS: Ran = (2, block(10, None, false, true));
        const CHECKS: Ran = (1, block(10, None, false, false));
        assert_eq!(with(&[], false), 3);
        assert_eq!(with(&[&STORES], false), 0);
        assert_eq!(with(&[&POLLS], false), 3, "once it is no loop");
        assert_eq!(with(&[&POLLS; 3], false), 0, "a loop that does not wait");
        assert_eq!(with(&[&WAITS; 20], false), 3);
        assert_eq!(with(&[[&WAITS; 20], [&STORES; 20]].concat(), false), 0, "work behind a wait");
        assert_eq!(with(&[&CHECKS; 6], false), 3);
        assert_eq!(with(&[&CHECKS; 7], false), 0, "too long");
        assert_eq!(with(&[&STORES; 8], true), 3, "it counts");
        assert_eq!(with(&[&STORES; 9], true), 0);
        assert_eq!(with(&[&POLLS; 13], true), 0, "nobody waits while it has the mutex");
    }
}
