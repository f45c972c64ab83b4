//! One order of what all threads do to each other.
//!
//! The records give the time now and then: when a buffer was full, and around system calls. What threads do to each
//! other is in the order of the times that follow from these (`times`), as far as that can have been: nobody has a lock
//! that another thread holds, nobody leaves a barrier before all have come, no thread starts before it was made or is
//! joined before it has ended. A thread whose next step cannot have been waits for the others.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::SyncFunction;

use crate::drmemtrace::thread::Happening;

/// How far above its first stack pointer a thread's handle lies at most.
const MOST_ABOVE_STACK: u64 = 16 << 20;

/// Who waits, and for what: threads by their number in the order in which they were made.
#[derive(Default)]
pub struct Order {
    /// Threads with their times that may be able to go on.
    ready: BinaryHeap<Reverse<(u64, usize)>>,
    /// Threads that could not, when they were last asked.
    waiting: Vec<(u64, usize)>,
    locks: FxHashMap<u64, Holders>,
    barriers: FxHashMap<u64, Barrier>,
    /// What semaphores hold, as far as it was set.
    semaphores: FxHashMap<u64, i64>,
    /// Threads that called for a thread which has not started.
    makers: VecDeque<usize>,
    has_makers: bool,
    /// Started threads: the first stack pointer, and whether the thread has ended.
    started: FxHashMap<usize, (u64, bool)>,
    /// The first that has not started: threads are numbered as they were made.
    next_start: usize,
    forks: Vec<Fork>,
    /// How many events stand where they cannot have been.
    pub forced: u64,
}

#[derive(Default)]
struct Holders {
    writer: Option<usize>,
    readers: FxHashSet<usize>,
}

#[derive(Default)]
struct Barrier {
    /// How many threads meet; 0 where it is unknown.
    count: u64,
    come: u64,
    left: u64,
}

/// A parallel region that has begun.
struct Fork {
    master: usize,
    body: u64,
    /// Threads that have entered its body.
    entered: FxHashSet<usize>,
}

impl Order {
    /// Whether the trace says who makes threads.
    pub fn makers_are_known(&mut self, known: bool) {
        self.has_makers = known;
    }

    /// The thread does something at this time.
    pub fn add(&mut self, time: u64, thread: usize) {
        self.ready.push(Reverse((time, thread)));
    }

    /// The thread that goes on; `next` tells what each does next. None where all have ended.
    pub fn choose(&mut self, next: impl Fn(usize) -> Happening) -> Option<usize> {
        while let Some(Reverse((time, thread))) = self.ready.pop() {
            if self.can(thread, &next(thread)) {
                return Some(thread);
            }
            self.waiting.push((time, thread));
        }
        // Barriers of teams and ends of regions have no count: they are over when nobody else can go on.
        let last = |happening: &Happening| match happening {
            Happening::Leave { function: SyncFunction::TeamBarrier, .. } => 0,
            Happening::Leave { function: SyncFunction::ParallelFork, .. } => 1,
            _ => 2,
        };
        let best = self.waiting.iter().map(|&(time, thread)| (last(&next(thread)), time, thread)).min()?;
        // Who made a thread may not be in the trace.
        self.forced += u64::from(best.0 == 2 && !matches!(next(best.2), Happening::Start(_)));
        self.waiting.retain(|&(time, thread)| {
            let is_of_team = best.0 == 0 && last(&next(thread)) == 0;
            if is_of_team && thread != best.2 {
                self.ready.push(Reverse((time, thread)));
            }
            thread != best.2 && !is_of_team
        });
        Some(best.2)
    }

    /// Whether this can have been now.
    fn can(&self, thread: usize, happening: &Happening) -> bool {
        use SyncFunction as F;
        match *happening {
            Happening::Start(_) => {
                let is_made = self.started.is_empty() || !self.has_makers || !self.makers.is_empty();
                is_made && thread == self.next_start
            }
            Happening::Enter { function: F::ParallelBody, object, .. } => self.fork_of(thread, object).is_some(),
            Happening::Leave { function, result, object, argument } => match function {
                // A region that a thread runs by itself names no body at its end.
                F::ParallelFork => object == 0,
                F::TeamBarrier => false,
                F::BarrierWait => self.barriers.get(&object).is_none_or(Barrier::is_complete),
                F::SemaphoreWait => self.semaphores.get(&object).is_none_or(|value| *value > 0),
                F::ThreadJoin => self.joined(object).is_none_or(|thread| self.started[&thread].1),
                function => match taken(function, result, object, argument) {
                    Some((lock, reads)) => self.locks.get(&lock).is_none_or(|holders| holders.lets(thread, reads)),
                    None => true,
                },
            },
            _ => true,
        }
    }

    /// This happens now. Returns the thread that made the one which starts.
    pub fn happens(&mut self, thread: usize, happening: &Happening) -> Option<usize> {
        use SyncFunction as F;
        let mut frees = true;
        let mut maker = None;
        match *happening {
            Happening::Start(sp) => {
                maker = self.makers.pop_front();
                self.started.insert(thread, (sp, false));
                while self.started.contains_key(&self.next_start) {
                    self.next_start += 1;
                }
            }
            Happening::End(_) => {
                self.started.entry(thread).or_default().1 = true;
            }
            Happening::Enter { function, object, argument } => match function {
                F::ThreadCreate => self.makers.push_back(thread),
                F::BarrierInit => {
                    self.barriers.insert(object, Barrier { count: argument, come: 0, left: 0 });
                    self.semaphores.insert(object, argument.cast_signed());
                }
                F::BarrierWait => self.barriers.entry(object).or_default().come += 1,
                F::SemaphorePost => {
                    _ = self.semaphores.entry(object).and_modify(|value| *value = value.saturating_add(1))
                }
                F::MutexUnlock | F::SpinUnlock | F::ReadWriteUnlock | F::CriticalLeave => self.free(object, thread),
                F::ConditionWait => self.free(argument, thread),
                F::ParallelFork => {
                    let entered = FxHashSet::default();
                    self.forks.push(Fork { master: thread, body: object, entered });
                }
                F::ParallelBody => {
                    if let Some(fork) = self.fork_of(thread, object) {
                        self.forks[fork].entered.insert(thread);
                    }
                }
                _ => frees = false,
            },
            Happening::Leave { function, result, object, argument } => match function {
                F::BarrierWait => self.barriers.entry(object).or_default().left += 1,
                F::SemaphoreWait => {
                    _ = self.semaphores.entry(object).and_modify(|value| *value = value.saturating_sub(1))
                }
                F::ParallelFork => {
                    if let Some(at) = self.forks.iter().rposition(|fork| fork.master == thread) {
                        self.forks.remove(at);
                    }
                }
                _ => {
                    frees = false;
                    if let Some((lock, reads)) = taken(function, result, object, argument) {
                        let holders = self.locks.entry(lock).or_default();
                        if reads {
                            holders.readers.insert(thread);
                        } else {
                            holders.writer = Some(thread);
                        }
                    }
                }
            },
            Happening::FutexWait(_) | Happening::Own(_) => frees = false,
        }
        if frees {
            self.ready.extend(self.waiting.drain(..).map(Reverse));
        }
        maker
    }

    fn free(&mut self, lock: u64, thread: usize) {
        if let Some(holders) = self.locks.get_mut(&lock)
            && !holders.readers.remove(&thread)
        {
            // Some locks are given back by another thread than the one that took them.
            holders.writer = None;
        }
    }

    /// The region whose body the thread can enter now.
    fn fork_of(&self, thread: usize, body: u64) -> Option<usize> {
        let open = |fork: &Fork| fork.body == body && !fork.entered.contains(&thread);
        self.forks
            .iter()
            .rposition(|fork| fork.master == thread && open(fork))
            .or_else(|| self.forks.iter().position(open))
    }

    /// The thread with this handle.
    fn joined(&self, handle: u64) -> Option<usize> {
        let below = self.started.iter().filter(|(_, (sp, _))| *sp < handle && handle - *sp < MOST_ABOVE_STACK);
        below.max_by_key(|(_, (sp, ended))| (*sp, !ended)).map(|(thread, _)| *thread)
    }
}

impl Holders {
    fn lets(&self, thread: usize, reads: bool) -> bool {
        let free = self.writer.is_none_or(|writer| writer == thread);
        free && (reads || self.readers.iter().all(|reader| *reader == thread))
    }
}

impl Barrier {
    fn is_complete(&self) -> bool {
        self.count == 0 || self.come >= (self.left / self.count + 1).saturating_mul(self.count)
    }
}

/// The lock that a thread has when it has left this function, and whether others may read under it.
fn taken(function: SyncFunction, result: u64, object: u64, argument: u64) -> Option<(u64, bool)> {
    use SyncFunction as F;
    let succeeded = result as u32 == 0;
    match function {
        F::MutexLock | F::WriteLock => succeeded.then_some((object, false)),
        F::SpinLock => Some((object, false)),
        F::ReadLock | F::ReadTryLock => succeeded.then_some((object, true)),
        F::WriteTryLock | F::SpinTryLock => succeeded.then_some((object, false)),
        F::MutexTryLock => (succeeded != (argument == 1)).then_some((object, false)),
        F::CriticalEnter => (argument == 0 || !succeeded).then_some((object, false)),
        F::ConditionWait => Some((argument, false)),
        _ => None,
    }
}
