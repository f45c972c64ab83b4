//! What one thread hands over to another: semaphores that are no locks, and iterations of doacross loops.
//!
//! The n-th wait for a semaphore that was v at first gets what the (n - v)-th post gave it. An iteration of a doacross
//! loop waits for one with a number, and gets what was posted last with that number. Lanes then wait as threads would:
//! a lane that waits goes on when the lane that posted has.

use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::Seq;

use crate::EpisodeId;

/// A thread posts, or has waited.
#[derive(Clone, Copy, Debug)]
pub(in crate::view) struct HandOver {
    pub posts: bool,
    pub what: What,
    pub seq: Seq,
}

/// What is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::view) enum What {
    /// By the semaphore at this address.
    Semaphore(u64),
    /// The iteration of this number of a doacross loop: of several dimensions, the first.
    Iteration {
        number: u64,
        /// How many parallel regions and barriers came before.
        after: (u32, u32),
    },
}

/// A post or a wait: which thread's, and which of it.
type Call = (usize, usize);

/// When, whether it is a post, and which; of what iteration, and how many regions and barriers came before.
type OfLoop = (Seq, bool, Call, u64, (u32, u32));

/// The hand-overs of all threads.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct HandOvers {
    /// Per thread and post or wait: what is handed over, if that is known.
    pub episodes: Vec<Vec<Option<EpisodeId>>>,
    /// Whether iterations wait for each other.
    pub has_loops: bool,
    /// Semaphores, and whether loops, of which it is not known.
    pub unknown_semaphores: usize,
    pub unknown_loops: bool,
}

impl HandOvers {
    /// Of threads, and the semaphores that are handed over, each with its first value if that is known.
    pub fn new(
        threads: &[&[HandOver]],
        semaphores: &FxHashMap<u64, Option<u64>>,
        next: &mut impl FnMut() -> EpisodeId,
    ) -> HandOvers {
        let mut all =
            HandOvers { episodes: threads.iter().map(|t| vec![None; t.len()]).collect(), ..HandOvers::default() };
        let mut by_semaphore: FxHashMap<u64, Vec<(Seq, bool, Call)>> = FxHashMap::default();
        let mut of_loops = Vec::new();
        for (t, thread) in threads.iter().enumerate() {
            for (i, one) in thread.iter().enumerate() {
                match one.what {
                    What::Semaphore(address) if semaphores.contains_key(&address) => {
                        by_semaphore.entry(address).or_default().push((one.seq, one.posts, (t, i)));
                    }
                    What::Semaphore(_) => {}
                    What::Iteration { number, after } => of_loops.push((one.seq, one.posts, (t, i), number, after)),
                }
            }
        }
        let mut pairs = Vec::new();
        let mut in_order: Vec<_> = by_semaphore.into_iter().collect();
        in_order.sort_unstable_by_key(|(address, _)| *address);
        for (address, mut calls) in in_order {
            calls.sort_unstable();
            match semaphores[&address].and_then(|first| of_semaphore(&calls, first)) {
                Some(found) => pairs.extend(found),
                None => all.unknown_semaphores += 1,
            }
        }
        of_loops.sort_unstable();
        all.has_loops = !of_loops.is_empty();
        match of_iterations(&of_loops) {
            Some(found) => pairs.extend(found),
            None => all.unknown_loops = true,
        }
        for ((t, i), (waiter, wait)) in pairs {
            let episode = *all.episodes[t][i].get_or_insert_with(&mut *next);
            all.episodes[waiter][wait] = Some(episode);
        }
        all
    }
}

/// Which post each wait gets, in the order of time; none where a wait is over before its post.
fn of_semaphore(calls: &[(Seq, bool, Call)], first: u64) -> Option<Vec<(Call, Call)>> {
    let (mut posts, mut waits, mut pairs) = (Vec::new(), 0, Vec::new());
    for (_, is_post, call) in calls {
        if *is_post {
            posts.push(*call);
            continue;
        }
        if let Some(number) = u64::checked_sub(waits, first) {
            pairs.push((*posts.get(usize::try_from(number).ok()?)?, *call));
        }
        waits += 1;
    }
    Some(pairs)
}

/// The same of iterations; none where two have one number, as in loops of several dimensions. Clang's loops also ask
/// for iterations that do not exist: nobody waits for these.
fn of_iterations(calls: &[OfLoop]) -> Option<Vec<(Call, Call)>> {
    let (mut seen, mut last, mut pairs) = (FxHashSet::default(), FxHashMap::default(), Vec::new());
    for (_, is_post, call, number, after) in calls {
        if *is_post {
            if !seen.insert((*number, *after)) {
                return None;
            }
            last.insert(*number, *call);
        } else if let Some(post) = last.get(number) {
            pairs.push((*post, *call));
        } else {
            seen.insert((*number, *after));
        }
    }
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By thread and call, what is handed over.
    fn found(threads: &[&[(u64, bool, What)]], first: Option<u64>) -> Vec<Vec<Option<u32>>> {
        let threads: Vec<Vec<HandOver>> = threads
            .iter()
            .map(|calls| {
                calls.iter().map(|(seq, posts, what)| HandOver { posts: *posts, what: *what, seq: Seq(*seq) }).collect()
            })
            .collect();
        let threads: Vec<&[HandOver]> = threads.iter().map(|calls| &calls[..]).collect();
        let mut numbers = 0..;
        let semaphores = [(64, first)].into_iter().collect();
        let all = HandOvers::new(&threads, &semaphores, &mut || EpisodeId(numbers.next().unwrap()));
        all.episodes.iter().map(|calls| calls.iter().map(|one| one.map(|one| one.0)).collect()).collect()
    }

    #[test]
    fn a_wait_gets_what_was_posted_for_it() {
        let semaphore = What::Semaphore(64);
        let (poster, waiter) =
            ([(1, true, semaphore), (2, true, semaphore)], [(3, false, semaphore), (4, false, semaphore)]);
        assert_eq!(found(&[&poster, &waiter], Some(0)), [[Some(0), Some(1)], [Some(0), Some(1)]]);
        // One may wait before anything is posted.
        assert_eq!(found(&[&poster, &waiter], Some(1)), [[Some(0), None], [None, Some(0)]]);
        assert_eq!(found(&[&poster, &waiter], None), [[None; 2]; 2]);
        // More was there than is known.
        assert_eq!(found(&[&poster, &[(0, false, semaphore)]], Some(0)), [vec![None; 2], vec![None]]);
    }

    #[test]
    fn an_iteration_gets_what_the_one_with_its_number_posted() {
        let one = |number, after| What::Iteration { number, after: (after, 0) };
        let first = [(1, true, one(0, 0)), (5, true, one(0, 1))];
        let second = [(2, false, one(0, 0)), (6, false, one(0, 1))];
        assert_eq!(found(&[&first, &second], None), [[Some(0), Some(1)], [Some(0), Some(1)]]);
        // There is none before the first.
        assert_eq!(found(&[&[(1, true, one(0, 0))], &[(2, false, one(7, 0))]], None), [[None], [None]]);
        assert_eq!(found(&[&[(3, true, one(0, 0))], &[(2, false, one(0, 0))]], None), [[None], [None]]);
        // Of a loop of two dimensions only the first number is known.
        let again = [(1, true, one(0, 0)), (2, true, one(0, 0))];
        assert_eq!(found(&[&again, &[(3, false, one(0, 0))]], None), [vec![None; 2], vec![None]]);
    }
}
