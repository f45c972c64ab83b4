//! Where a thread meets others: barriers by their functions, those made of a mutex and a condition variable, and those
//! of the program's own.

use super::super::locks::HeldLock;
use super::{ThreadState, push_control};
use crate::{Batch, Control, EpisodeId};

impl ThreadState<'_> {
    /// The thread is the last that comes to a barrier made of a condition variable. Its locks are free while it waits
    /// there: among lanes it may come first.
    pub(super) fn wake(&mut self, batch: &mut Batch) {
        let Some(episode) = self.waits_at.take().filter(|_| self.extents.is_open()) else { return };
        let held: Vec<HeldLock> = self.held.locks().to_vec();
        if let Some(lock) = held.iter().find_map(|lock| self.plan.locks.of_barrier(lock.object)) {
            self.meets_behind = Some((lock, episode));
            return;
        }
        held.iter().for_each(|lock| self.release_if_replayed(*lock, batch));
        self.meet(Control::Meet(episode), batch);
        if self.plan.lock_rule.are_taken() {
            held.iter().for_each(|lock| self.acquire(*lock, batch));
        }
    }

    /// The barrier ends with this mutex given back, whichever of its ways the thread has gone; or, without one, here.
    pub(super) fn meet_behind(&mut self, mutex: Option<u64>, batch: &mut Batch) {
        if let Some((_, episode)) = self.meets_behind.take_if(|behind| mutex.is_none_or(|mutex| behind.0 == mutex)) {
            self.meet(Control::Meet(episode), batch);
        }
    }

    /// The thread has given a mutex back. Of a barrier it is the end, or the thread waits for the others until it takes
    /// it again.
    pub(super) fn gather(&mut self, mutex: u64, batch: &mut Batch) {
        let Some(rounds) = self.gatherings.get(&mutex) else { return };
        let given = self.given.entry(mutex).or_default();
        let episode = rounds.get(*given).copied().flatten();
        *given += 1;
        match episode {
            Some(episode) => self.meet(Control::Meet(episode), batch),
            None => {
                self.forget_waits();
                self.gathers_at = Some(mutex);
            }
        }
    }

    /// Whether a condition is a matter of such a barrier: the thread has its mutex, or gives it up to wait.
    pub(super) fn is_of_gathering(&self, argument: u64) -> bool {
        let is_one = |mutex: &u64| self.gatherings.contains_key(mutex);
        is_one(&argument) || self.held.locks().iter().any(|lock| is_one(&lock.object))
    }

    /// The thread counts that it has come to a barrier of the program's own, if the word is one's.
    pub(super) fn arrive(&mut self, word: u64, batch: &mut Batch) {
        let Some((first, rounds)) = self.plan.episodes.own.get(&word) else { return };
        let arrivals = self.arrivals.entry(word).or_default();
        if (*arrivals as usize) < *rounds {
            let episode = EpisodeId(first.0 + *arrivals);
            *arrivals += 1;
            self.resolve(true, batch);
            self.meet(Control::Meet(episode), batch);
            self.unordered.meets(self.counts.kept);
        }
    }

    pub(super) fn meet(&mut self, episode: Control, batch: &mut Batch) {
        if self.extents.is_open() {
            self.unordered.is_ordered(self.counts.kept);
            self.spin.forget();
            self.turns.forget();
            self.tries = None;
            push_control(batch, episode);
        }
    }
}
