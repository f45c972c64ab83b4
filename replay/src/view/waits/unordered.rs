//! Waits in loops of the program's own that order no lanes: what a thread waits for is no lock that it takes then, and
//! no barrier.

use std::collections::BTreeSet;

/// How many instructions a thread runs at most between the loop in which it waits and the lock that it takes then.
const NEAR: u64 = 256;

/// Those of a thread.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct UnorderedWaits {
    /// How many instructions were kept when it waited last, where nothing has ordered that wait yet.
    last: Option<u64>,
    count: u64,
    /// How often it asked the kernel for what another may give.
    pub asks: u64,
    /// How many were when it met others at a barrier at which it waits now.
    met: Option<u64>,
    /// The condition variables that it waited for, and that it signalled, in no round of a barrier.
    pub awaited: BTreeSet<u64>,
    pub signalled: BTreeSet<u64>,
}

impl UnorderedWaits {
    /// The thread waits; so many instructions were kept.
    pub fn waits(&mut self, kept: u64) {
        if self.has_met(kept) {
            return;
        }
        self.count += u64::from(self.last.is_some_and(|last| kept > last + NEAR));
        self.last = Some(kept);
    }

    /// The thread waits for a semaphore of C++, whatever it takes next; or gives a lock that it was not seen to take.
    pub fn waits_surely(&mut self) {
        self.count += 1;
    }

    /// The thread takes a lock, or meets others.
    pub fn is_ordered(&mut self, kept: u64) {
        self.count += u64::from(self.last.take().is_some_and(|last| kept > last + NEAR));
    }

    /// The thread meets others at a barrier of the program's own; it waits for them behind that.
    pub fn meets(&mut self, kept: u64) {
        self.met = Some(kept);
    }

    /// Whether it has just done so.
    pub fn has_met(&self, kept: u64) -> bool {
        self.met.is_some_and(|met| kept <= met + NEAR)
    }

    /// How many there were, at the thread's end.
    pub fn total(&self) -> u64 {
        self.count + u64::from(self.last.is_some())
    }
}

/// How many condition variables threads signal that wait for each other there. Where none of them waits, others do, or
/// else nobody had to; `is_awaited` says whether some thread waits, wherever.
pub(in crate::view) fn conditions<'a>(
    threads: impl Iterator<Item = &'a UnorderedWaits> + Clone,
    is_awaited: impl Fn(u64) -> bool,
) -> usize {
    let awaited: BTreeSet<u64> = threads.clone().flat_map(|thread| &thread.awaited).copied().collect();
    let signalled: BTreeSet<u64> = threads.flat_map(|thread| &thread.signalled).copied().collect();
    signalled.into_iter().filter(|one| awaited.contains(one) || !is_awaited(*one)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_unless_a_lock_is_taken_soon() {
        let mut waits = UnorderedWaits::default();
        waits.waits(100);
        waits.waits(104);
        waits.is_ordered(110);
        assert_eq!(waits.total(), 0);
        waits.waits(1000);
        waits.waits(1004);
        waits.is_ordered(2000);
        assert_eq!(waits.total(), 1);
        waits.waits(3000);
        assert_eq!(waits.total(), 2);
        waits.is_ordered(4000);
        waits.meets(4000);
        waits.waits(4010);
        assert_eq!(waits.total(), 2);
    }

    #[test]
    fn who_only_signals_others_waits_for_none_of_them() {
        let signals = UnorderedWaits { signalled: [64].into(), ..UnorderedWaits::default() };
        let waits = UnorderedWaits { awaited: [64].into(), ..UnorderedWaits::default() };
        assert_eq!(conditions([signals.clone(), waits.clone()].iter(), |_| true), 1);
        assert_eq!(conditions([waits].iter(), |_| true), 0);
        assert_eq!(conditions([signals.clone()].iter(), |_| true), 0, "another thread waits");
        assert_eq!(conditions([signals].iter(), |_| false), 1, "nobody had to");
    }
}
