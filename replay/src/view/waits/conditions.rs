//! Barriers that a program builds from a mutex and a condition variable: all but the last thread wait, the last wakes
//! them.
//!
//! ```text
//! lock(m); if (++arrived == n) { arrived = 0; broadcast(c); } else wait(c, m); unlock(m);
//! ```
//!
//! The waits for a condition variable since the last broadcast, and the next broadcast, are one *round*. The variable
//! is a barrier's when it is never signalled and all its rounds are of the same threads, two at least.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Seq, SyncFunction};

use crate::EpisodeId;

/// A thread waits for a condition, or says that it holds.
#[derive(Clone, Copy, Debug)]
pub(in crate::view) struct ConditionCall {
    /// Which of the two.
    pub function: SyncFunction,
    /// The address of the variable.
    pub condition: u64,
    /// That of the mutex, where it waits.
    pub mutex: u64,
    pub seq: Seq,
}

/// Whether the function waits for a condition, or says that it holds.
pub(in crate::view) fn is_of_condition(function: SyncFunction) -> bool {
    use SyncFunction::{ConditionBroadcast, ConditionSignal, ConditionWait};
    matches!(function, ConditionWait | ConditionSignal | ConditionBroadcast)
}

/// A call of a thread: both by number.
type Call = (usize, usize);

/// Threads that wait for a condition, each with its latest call.
type Waiting = BTreeMap<usize, usize>;

/// Per thread and call: the episode at which the thread meets others in it, if it does.
pub(in crate::view) fn number_rounds(
    threads: &[&[ConditionCall]],
    next: &mut impl FnMut() -> EpisodeId,
) -> Vec<Vec<Option<EpisodeId>>> {
    let mut met: Vec<Vec<Option<EpisodeId>>> = threads.iter().map(|t| vec![None; t.len()]).collect();
    let mut by_condition: FxHashMap<u64, Vec<(Seq, SyncFunction, Call)>> = FxHashMap::default();
    for (t, thread) in threads.iter().enumerate() {
        for (i, call) in thread.iter().enumerate() {
            by_condition.entry(call.condition).or_default().push((call.seq, call.function, (t, i)));
        }
    }
    let mut all: Vec<_> = by_condition.into_values().collect();
    all.iter_mut().for_each(|calls| calls.sort_by_key(|call| call.0));
    all.sort_by_key(|calls| calls[0].0);
    for round in all.iter().filter_map(|calls| rounds(calls)).flatten() {
        let episode = next();
        round.into_iter().for_each(|(t, i)| met[t][i] = Some(episode));
    }
    met
}

/// The mutexes that are a part of such a barrier: each thread takes one as often as it meets others there, and it
/// guards nothing else. `met` are the episodes of calls, `takes` tells how often a thread takes a mutex.
pub(in crate::view) fn mutexes<'a>(
    threads: &[&[ConditionCall]],
    met: &[Vec<Option<EpisodeId>>],
    takes: impl Iterator<Item = (usize, u64, u32)> + 'a,
) -> FxHashSet<u64> {
    let calls = || {
        threads.iter().zip(met).enumerate().flat_map(|(t, (calls, met))| {
            calls.iter().zip(met).map(move |(call, episode)| (t, call, episode.is_some()))
        })
    };
    // Who wakes the others does not say which mutex it has.
    let waits = calls().filter(|(_, call, _)| call.function == SyncFunction::ConditionWait);
    let mut of_condition: FxHashMap<u64, Option<u64>> = FxHashMap::default();
    for (_, call, _) in waits {
        let mutex = of_condition.entry(call.condition).or_insert(Some(call.mutex));
        *mutex = mutex.filter(|mutex| *mutex == call.mutex);
    }
    let mut left: FxHashMap<u64, FxHashMap<usize, u32>> = FxHashMap::default();
    for (t, call, is_met) in calls() {
        if let Some(Some(mutex)) = of_condition.get(&call.condition) {
            *left.entry(*mutex).or_default().entry(t).or_default() += u32::from(is_met);
        }
    }
    let mut taken: FxHashMap<u64, FxHashMap<usize, u32>> = FxHashMap::default();
    for (t, mutex, times) in takes.filter(|(_, mutex, _)| left.contains_key(mutex)) {
        taken.entry(mutex).or_default().insert(t, times);
    }
    // Of a lock that is known by its form nobody has counted how often it is taken.
    left.retain(|mutex, met| taken.get(mutex) == Some(met));
    left.into_keys().collect()
}

/// The rounds of a condition variable; none where it is not a barrier's.
fn rounds(calls: &[(Seq, SyncFunction, Call)]) -> Option<Vec<Waiting>> {
    let (mut rounds, mut waiting) = (Vec::<Waiting>::new(), Waiting::new());
    for (_, function, (thread, call)) in calls {
        let is_wait = *function == SyncFunction::ConditionWait;
        if *function == SyncFunction::ConditionSignal || !is_wait && waiting.contains_key(thread) {
            return None;
        }
        waiting.insert(*thread, *call);
        if !is_wait {
            rounds.push(std::mem::take(&mut waiting));
        }
    }
    let is_of_all = |round: &Waiting| round.len() > 1 && round.keys().eq(rounds[0].keys());
    (waiting.is_empty() && rounds.iter().all(is_of_all)).then_some(rounds)
}

#[cfg(test)]
mod tests {
    use SyncFunction::{ConditionBroadcast, ConditionSignal, ConditionWait};

    use super::*;

    /// What threads call, in this order: by call, the number of the round.
    fn met(calls: &[(usize, SyncFunction)]) -> Vec<Option<u32>> {
        let mut threads: [Vec<ConditionCall>; 3] = Default::default();
        for (seq, (thread, function)) in calls.iter().enumerate() {
            let call = ConditionCall { function: *function, condition: 64, mutex: 8, seq: Seq(seq as u64) };
            threads[*thread].push(call);
        }
        let mut numbers = 0..;
        let mut met =
            number_rounds(&threads.each_ref().map(|calls| &calls[..]), &mut || EpisodeId(numbers.next().unwrap()));
        met.iter_mut().for_each(|calls| calls.reverse());
        calls.iter().map(|(thread, _)| met[*thread].pop().unwrap().map(|episode| episode.0)).collect()
    }

    #[test]
    fn who_waits_and_who_wakes_them_meet_round_by_round() {
        let (wait, wake) = (ConditionWait, ConditionBroadcast);
        let rounds = [(0, wait), (2, wait), (1, wake), (1, wait), (2, wait), (0, wake)];
        assert_eq!(met(&rounds), [Some(0), Some(0), Some(0), Some(1), Some(1), Some(1)]);
        // A thread that looks again waits on.
        let again = [(0, wait), (0, wait), (1, wake)];
        assert_eq!(met(&again), [None, Some(0), Some(0)]);
    }

    #[test]
    fn a_mutex_that_guards_nothing_else_is_a_part_of_its_barrier() {
        let call = |function, condition, mutex| ConditionCall { function, condition, mutex, seq: Seq(0) };
        let (wait, wake) = (call(ConditionWait, 64, 8), call(ConditionBroadcast, 64, 0));
        let of = |first: &[ConditionCall], second: &[ConditionCall], takes: &[(usize, u64, u32)]| {
            let met =
                [first, second].map(|calls| calls.iter().map(|call| (call.condition == 64).then_some(EpisodeId(0))));
            mutexes(&[first, second], &met.map(Iterator::collect), takes.iter().copied())
        };
        assert_eq!(of(&[wait], &[wake], &[(0, 8, 1), (1, 8, 1)]), FxHashSet::from_iter([8]));
        // The first thread takes it once more, or a third one does, or not all wait with it.
        assert!(of(&[wait], &[wake], &[(0, 8, 2), (1, 8, 1)]).is_empty());
        assert!(of(&[wait], &[wake], &[(0, 8, 1), (1, 8, 1), (2, 8, 1)]).is_empty());
        assert!(of(&[wait, call(ConditionWait, 64, 9)], &[wake], &[(0, 8, 1), (1, 8, 1)]).is_empty());
        // Nobody meets at this one.
        let queue = [call(ConditionWait, 32, 8)];
        assert!(of(&queue, &[], &[(0, 8, 1)]).is_empty());
    }

    #[test]
    fn a_queue_is_no_barrier() {
        let (wait, wake) = (ConditionWait, ConditionBroadcast);
        for queue in [
            &[(0, wait), (1, ConditionSignal)][..],
            &[(0, wait), (1, wake), (2, wake)],
            &[(0, wait), (1, wait), (2, wake), (0, wait), (2, wake)],
            &[(0, wait), (1, wake), (0, wait)],
        ] {
            assert!(met(queue).iter().all(Option::is_none), "{queue:?}");
        }
    }
}
