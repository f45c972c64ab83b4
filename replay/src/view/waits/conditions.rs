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

use rustc_hash::FxHashMap;
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

/// How often a thread takes a lock: which thread, the lock's address, and the times.
pub(in crate::view) type Takes = (usize, u64, u32);

/// What is a part of such a barrier and guards nothing else, each with what all give back at its end: the mutex that
/// each thread takes as often as it meets others there; or a lock that is known by its form, which it is also seen to
/// take again behind each wait. `met` are the episodes of calls; `takes` and `by_form` tell of both kinds of locks.
pub(in crate::view) fn mutexes(
    threads: &[&[ConditionCall]],
    met: &[Vec<Option<EpisodeId>>],
    takes: impl Iterator<Item = Takes>,
    by_form: impl Iterator<Item = Takes>,
) -> FxHashMap<u64, u64> {
    let calls = || {
        threads.iter().zip(met).enumerate().flat_map(|(t, (calls, met))| {
            calls.iter().zip(met).map(move |(call, episode)| (t, call, episode.is_some()))
        })
    };
    // Who wakes the others does not say which mutex it has.
    let waits = || calls().filter(|(_, call, _)| call.function == SyncFunction::ConditionWait);
    let mut of_condition: FxHashMap<u64, Option<u64>> = FxHashMap::default();
    for (_, call, _) in waits() {
        let mutex = of_condition.entry(call.condition).or_insert(Some(call.mutex));
        *mutex = mutex.filter(|mutex| *mutex == call.mutex);
    }
    // By mutex and thread: how often the thread meets others, and that and how often it waits.
    let mut times: FxHashMap<u64, [FxHashMap<usize, u32>; 2]> = FxHashMap::default();
    for (t, call, is_met) in calls() {
        if let Some(Some(mutex)) = of_condition.get(&call.condition) {
            let [met, taken] = times.entry(*mutex).or_default();
            let waits = u32::from(call.function == SyncFunction::ConditionWait);
            *met.entry(t).or_default() += u32::from(is_met);
            *taken.entry(t).or_default() += u32::from(is_met) + waits;
        }
    }
    let by_lock = |takes: &mut dyn Iterator<Item = Takes>| {
        let mut all: FxHashMap<u64, FxHashMap<usize, u32>> = FxHashMap::default();
        takes.for_each(|(t, lock, times)| _ = all.entry(lock).or_default().insert(t, times));
        all
    };
    let (takes, by_form) = (by_lock(&mut { takes }), by_lock(&mut { by_form }));
    let mut all = FxHashMap::default();
    for (mutex, [met, taken]) in times.iter().filter(|(_, [met, _])| met.values().any(|times| *times > 0)) {
        if by_form.get(mutex) == Some(met) {
            all.insert(*mutex, *mutex);
        } else if takes.get(mutex) == Some(met) {
            let around = by_form.iter().filter(|(_, times)| *times == taken).map(|(lock, _)| *lock).min();
            all.insert(*mutex, around.unwrap_or(*mutex));
            all.extend(around.map(|lock| (lock, lock)));
        }
    }
    all
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
        let of = |first: &[ConditionCall], second: &[ConditionCall], takes: &[Takes]| {
            let met =
                [first, second].map(|calls| calls.iter().map(|call| (call.condition == 64).then_some(EpisodeId(0))));
            mutexes(&[first, second], &met.map(Iterator::collect), takes.iter().copied(), std::iter::empty())
        };
        assert_eq!(of(&[wait], &[wake], &[(0, 8, 1), (1, 8, 1)]), FxHashMap::from_iter([(8, 8)]));
        // The first thread takes it once more, or a third one does, or not all wait with it.
        assert!(of(&[wait], &[wake], &[(0, 8, 2), (1, 8, 1)]).is_empty());
        assert!(of(&[wait], &[wake], &[(0, 8, 1), (1, 8, 1), (2, 8, 1)]).is_empty());
        assert!(of(&[wait, call(ConditionWait, 64, 9)], &[wake], &[(0, 8, 1), (1, 8, 1)]).is_empty());
        // Nobody meets at this one.
        let queue = [call(ConditionWait, 32, 8)];
        assert!(of(&queue, &[], &[(0, 8, 1)]).is_empty());
    }

    #[test]
    fn a_lock_that_is_known_by_its_form_is_taken_again_behind_each_wait() {
        let call = |function, mutex| ConditionCall { function, condition: 64, mutex, seq: Seq(0) };
        let (first, second) = ([call(ConditionWait, 8)], [call(ConditionBroadcast, 0)]);
        let met = [vec![Some(EpisodeId(0))], vec![Some(EpisodeId(0))]];
        let of = |takes: &[Takes], by_form: &[Takes]| {
            mutexes(&[&first, &second], &met, takes.iter().copied(), by_form.iter().copied())
        };
        let mutex = [(0, 8, 1), (1, 8, 1)];
        assert_eq!(of(&mutex, &[(0, 96, 2), (1, 96, 1)]), FxHashMap::from_iter([(8, 96), (96, 96)]));
        assert_eq!(of(&[], &mutex), FxHashMap::from_iter([(8, 8)]), "the function takes it again");
        for other in [&[(0, 96, 2), (1, 96, 2)][..], &[(0, 96, 1), (1, 96, 1)], &[(0, 96, 2), (1, 96, 1), (2, 96, 1)]] {
            assert_eq!(of(&mutex, other), FxHashMap::from_iter([(8, 8)]), "{other:?}");
        }
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
