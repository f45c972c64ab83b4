//! Program and tracer on one processor, as long as the program has one thread and stops often.
//!
//! The two take turns then: each reads next what the other wrote, and neither runs while the other does. Yet a kernel
//! that finds another processor idle wakes each of them there, with an interrupt, and its memory stays in the first
//! processor's caches. On an idle machine of two processors, recording `true` takes 33 ms of CPU time on two
//! processors, and 24 ms on one.
//!
//! The program must not notice. It may run where it could before it asks on which processors it may run, changes that,
//! or makes a thread or a process, which would inherit it. The same holds as soon as it stops seldom, since it must not
//! wait for a processor that others use.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::{Pid, gettid};

use crate::kernel::ptrace::Tid;

/// A program with fewer stops between two looks stops seldom: waking it elsewhere takes 15 microseconds or so, which is
/// then at most 4% of the time.
const OFTEN: u32 = 50;

/// Keeps one program and the thread that traces it together. Clones do so for the same.
#[derive(Clone, Debug, Default)]
pub struct Together(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// How often the program has stopped since the last look.
    stops: AtomicU32,
    /// None: they are not together.
    pair: Mutex<Option<Pair>>,
}

/// The two threads, and where each may run otherwise.
#[derive(Debug)]
struct Pair {
    threads: [(Pid, CpuSet); 2],
    /// Where they run now.
    one: CpuSet,
}

impl Pair {
    /// Puts the two on the processor that this thread runs on. None where the kernel does not, or there is no other.
    fn of(program: Tid) -> nix::Result<Option<Pair>> {
        let threads = [Pid::from_raw(program.0), gettid()];
        let sets = [sched_getaffinity(threads[0])?, sched_getaffinity(threads[1])?];
        let (mut one, processor) = (CpuSet::new(), sched_getcpu()?);
        one.set(processor)?;
        if sets[0] == one || !sets[0].is_set(processor)? {
            return Ok(None);
        }
        let pair = Pair { threads: [(threads[0], sets[0]), (threads[1], sets[1])], one };
        for (thread, _) in pair.threads {
            if let Err(error) = sched_setaffinity(thread, &pair.one) {
                pair.part();
                return Err(error);
            }
        }
        Ok(Some(pair))
    }

    /// Lets both run where they could before, unless somebody else has said in the meantime where they are to run.
    fn part(&self) {
        for (thread, set) in &self.threads {
            if sched_getaffinity(*thread).is_ok_and(|now| now == self.one) {
                // It fails when the thread is gone.
                let _ = sched_setaffinity(*thread, set);
            }
        }
    }
}

impl Together {
    fn pair(&self) -> MutexGuard<'_, Option<Pair>> {
        self.0.pair.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This thread and the only one of a program, which is stopped, run on one processor from now on, if they may.
    pub fn begin(&self, program: Tid) {
        let mut pair = self.pair();
        if pair.is_none() {
            self.0.stops.store(OFTEN, Ordering::Relaxed);
            *pair = Pair::of(program).ok().flatten();
        }
    }

    /// Both run where they may again.
    pub fn end(&self) {
        if let Some(pair) = self.pair().take() {
            pair.part();
        }
    }

    /// The program has stopped.
    pub fn count_stop(&self) {
        self.0.stops.fetch_add(1, Ordering::Relaxed);
    }

    /// Called every now and then, from any thread: parts them when the program has stopped seldom since the last time.
    pub fn look(&self) {
        if self.0.stops.swap(0, Ordering::Relaxed) < OFTEN {
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn set(thread: Pid) -> CpuSet {
        sched_getaffinity(thread).unwrap()
    }

    #[test]
    fn threads_are_together_until_the_program_stops_seldom() {
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let (theirs, ours) = (Pid::from_raw(program.id().cast_signed()), gettid());
        let before = (set(theirs), set(ours));
        let together = Together::default();
        together.begin(Tid(theirs.as_raw()));
        let count = |set: &CpuSet| (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu) == Ok(true)).count();
        assert_eq!((count(&set(theirs)), set(theirs)), (1, set(ours)));
        together.look();
        (0..OFTEN).for_each(|_| together.count_stop());
        together.look();
        assert_eq!((count(&set(theirs)), set(theirs)), (1, set(ours)));
        together.look();
        assert_eq!((set(theirs), set(ours)), before);
        program.kill().unwrap();
        program.wait().unwrap();
        together.begin(Tid(theirs.as_raw()));
        assert_eq!(set(ours), before.1, "the program is gone");
    }

    #[test]
    fn what_somebody_else_has_set_stays() {
        let before = set(gettid());
        let last = (0..CpuSet::count()).rev().find(|&cpu| before.is_set(cpu) == Ok(true)).unwrap();
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let theirs = Pid::from_raw(program.id().cast_signed());
        let mut other = CpuSet::new();
        other.set(last).unwrap();
        let together = Together::default();
        together.begin(Tid(theirs.as_raw()));
        // Both processors but one: it differs from what we have set where there are two.
        let wanted = if set(theirs) == other { before } else { other };
        sched_setaffinity(theirs, &wanted).unwrap();
        together.end();
        assert_eq!((set(theirs), set(gettid())), (wanted, before));
        program.kill().unwrap();
        program.wait().unwrap();
    }
}
