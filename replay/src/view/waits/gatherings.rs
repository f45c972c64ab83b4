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
//! it. No section of a mutex that only guards data is so: another thread's comes before or behind it. What a thread
//! runs between two sections of a round is waiting. Threads that use it when others have ended meet among themselves.

use rustc_hash::FxHashMap;
use trace_format::{Pc, Seq};

use crate::EpisodeId;

/// Mutexes of a thread that are looked at, and how often each.
const MOST_MUTEXES: usize = 1 << 14;
const MOST_SECTIONS: usize = 1 << 16;

/// How many rounds a barrier has at least in all, and one of two threads, which may take turns by chance.
const LEAST: usize = 3;
const LEAST_OF_TWO: usize = 8;

/// A thread has a mutex.
#[derive(Clone, Copy, Debug)]
struct Section {
    from: Seq,
    to: Seq,
    /// The call that gave it back; none where nothing was called before.
    by: Option<Pc>,
}

/// The sections of a thread.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct Sections {
    of_mutex: FxHashMap<u64, Vec<Section>>,
    /// The mutexes that it has, each with when it took it.
    open: Vec<(u64, Seq)>,
    /// The last call.
    by: Option<Pc>,
}

impl Sections {
    /// The program calls a function there.
    pub fn calls(&mut self, pc: Pc) {
        self.by = Some(pc);
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
        if self.open.iter().all(|(open, _)| *open != mutex) {
            self.open.push((mutex, seq));
        }
    }

    /// The thread gives a mutex back.
    fn gives(&mut self, mutex: u64, seq: Seq) {
        let taken = self.open.iter().position(|(open, _)| *open == mutex).map(|at| self.open.swap_remove(at).1);
        if self.of_mutex.len() < MOST_MUTEXES || self.of_mutex.contains_key(&mutex) {
            let sections = self.of_mutex.entry(mutex).or_default();
            if sections.len() < MOST_SECTIONS {
                sections.push(Section { from: taken.unwrap_or(seq), to: seq, by: self.by });
            }
        }
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
    let mut of_mutex: FxHashMap<u64, Vec<(usize, &[Section])>> = FxHashMap::default();
    for (t, thread) in threads.iter().enumerate() {
        for (mutex, sections) in &thread.of_mutex {
            of_mutex.entry(*mutex).or_default().push((t, sections));
        }
    }
    let mut all: Vec<Rounds> = vec![Rounds::default(); threads.len()];
    let mut of_mutex: Vec<_> = of_mutex.into_iter().filter(|(mutex, _)| !is_known(*mutex)).collect();
    of_mutex.sort_unstable_by_key(|(mutex, _)| *mutex);
    for (mutex, of_threads) in of_mutex {
        let groups = generations(of_threads);
        let Some(found) = groups.iter().map(ends_of_rounds).collect::<Option<Vec<_>>>() else { continue };
        let least = if groups.iter().all(|group| group.len() == 2) { LEAST_OF_TWO } else { LEAST };
        if found.iter().map(|(_, rounds)| rounds).sum::<usize>() < least {
            continue;
        }
        for (group, (ends, rounds)) in groups.iter().zip(found) {
            let episodes: Vec<EpisodeId> = (0..rounds).map(|_| next()).collect();
            for ((t, sections), ends) in group.iter().zip(ends) {
                let mut met = vec![None; sections.len()];
                ends.iter().zip(&episodes).for_each(|(end, episode)| met[*end] = Some(*episode));
                all[*t].insert(mutex, met);
            }
        }
    }
    all
}

/// Threads that use a mutex at one time, by number, each with its sections.
type Generation<'a> = Vec<(usize, &'a [Section])>;

/// Those that use it one after another: as each time that a program starts threads anew.
fn generations(mut threads: Generation) -> Vec<Generation> {
    threads.sort_by_key(|(_, sections)| sections[0].from);
    let (mut all, mut until) = (Vec::<Generation>::new(), Seq(0));
    for thread in threads {
        let (from, to) = (thread.1[0].from, thread.1[thread.1.len() - 1].to);
        match all.last_mut().filter(|_| from < until) {
            Some(generation) => generation.push(thread),
            None => all.push(vec![thread]),
        }
        until = until.max(to);
    }
    all
}

/// By thread, the sections with which rounds end, and how many there are; none where the mutex is no barrier's.
fn ends_of_rounds(generation: &Generation) -> Option<(Vec<Vec<usize>>, usize)> {
    let threads: Vec<&[Section]> = generation.iter().map(|(_, sections)| *sections).collect();
    let by = threads.first()?.last()?.by?;
    let ends_of = |sections: &&[Section]| -> Vec<usize> {
        (0..sections.len()).filter(|at| sections[*at].by == Some(by)).collect()
    };
    let ends: Vec<Vec<usize>> = threads.iter().map(ends_of).collect();
    let rounds = ends[0].len();
    let is_whole = |(sections, ends): (&&[Section], &Vec<usize>)| {
        ends.len() == rounds && ends.last() == Some(&(sections.len() - 1)) && sections.len() < MOST_SECTIONS
    };
    if threads.len() < 2 || !threads.iter().zip(&ends).all(is_whole) {
        return None;
    }
    let are_all_there = |round: usize| {
        let of_all = || threads.iter().zip(&ends);
        let begins = of_all().map(|(sections, ends)| sections[if round == 0 { 0 } else { ends[round - 1] + 1 }].from);
        let left = of_all().map(|(sections, ends)| sections[ends[round]].to);
        begins.max() < left.min()
    };
    (0..rounds).all(are_all_there).then_some((ends, rounds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAVES: Pc = Pc(1);
    const WAITS: Pc = Pc(2);

    /// What threads of these numbers do in this order: take the mutex, or give it back there.
    fn threads<const N: usize>(steps: &[(usize, Option<Pc>)]) -> [Sections; N] {
        let mut all = [const { None }; N].map(|none: Option<Sections>| none.unwrap_or_default());
        for (seq, (thread, by)) in steps.iter().enumerate() {
            let seq = Seq(seq as u64);
            match by {
                None => all[*thread].takes(8, seq),
                Some(by) => {
                    all[*thread].calls(*by);
                    all[*thread].gives(8, seq);
                }
            }
        }
        all
    }

    fn met<const N: usize>(steps: &[(usize, Option<Pc>)]) -> Vec<Vec<Option<u32>>> {
        let (all, mut numbers) = (threads::<N>(steps), 0..);
        let all: Vec<&Sections> = all.iter().collect();
        let mut rounds = number_gatherings(&all, |_| false, &mut || EpisodeId(numbers.next().unwrap()));
        let of_thread = |rounds: &mut Rounds| rounds.remove(&8).unwrap_or_default();
        rounds.iter_mut().map(|thread| of_thread(thread).iter().map(|e| e.map(|e| e.0)).collect()).collect()
    }

    /// All but the last of these threads wait, then leave.
    fn round(order: &[usize]) -> Vec<(usize, Option<Pc>)> {
        let (last, others) = order.split_last().unwrap();
        let both = |thread: &usize, by| [(*thread, None), (*thread, Some(by))];
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
        let section = |thread| [(thread, None), (thread, Some(LEAVES))];
        let turns: Vec<_> = (0..30).flat_map(|i| section(i % 3)).collect();
        assert!(met::<3>(&turns).concat().is_empty());
        let mut steps = [round(&[0, 1, 2]), round(&[2, 0, 1]), round(&[1, 2, 0])].concat();
        steps.extend(section(1));
        assert!(met::<3>(&steps).concat().is_empty(), "one comes once more");
        steps.truncate(steps.len() - 2);
        steps.extend([(1, None), (1, Some(WAITS))]);
        assert!(met::<3>(&steps).concat().is_empty(), "one has not left");
    }

    #[test]
    fn who_leaves_before_all_have_come_has_met_nobody() {
        let rounds = [round(&[0, 1, 2]), round(&[2, 0, 1])].concat();
        let alone = round(&[1, 2]).into_iter().chain([(0, None), (0, Some(LEAVES))]);
        assert!(met::<3>(&rounds.into_iter().chain(alone).collect::<Vec<_>>()).concat().is_empty());
    }
}
