//! Locks: which functions take and give them, their numbers, and which a thread holds.

use rustc_hash::FxHashMap;
use trace_format::{Event, Pc, SyncFunction, Trace};

use super::waits::own_locks::OwnLocks;
use super::waits::semaphores::SemaphoreUse;
use crate::{Control, LockId};

/// What a lock is to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LockKind {
    Mutex,
    SpinLock,
    ReadWrite,
    Critical,
    Ordered,
    Semaphore,
    /// A word that looks like one.
    Own {
        can_share: bool,
    },
    /// A word of which threads only take shares: nobody waits for it.
    Shares,
}

/// The address that stands for the `ordered` sections of all loops: they have none.
const ORDERED: u64 = u64::MAX;

/// What a function does to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Takes its object when it returns, if [`has_taken`] says so.
    Take { kind: LockKind, shared: bool },
    /// Gives its object back when it is entered.
    Give,
    /// Gives the mutex that is its argument back when it is entered, and has it again when it returns.
    Wait,
}

/// What a function does to a lock, if anything. An `ordered` section is a lock that lanes ask for in the loop's order.
pub(super) fn action(function: SyncFunction) -> Option<Action> {
    use LockKind::*;
    use SyncFunction::*;
    let take = |kind, shared| Some(Action::Take { kind, shared });
    match function {
        MutexLock | MutexTryLock => take(Mutex, false),
        SyncFunction::SpinLock | SpinTryLock => take(LockKind::SpinLock, false),
        WriteLock | WriteTryLock => take(ReadWrite, false),
        ReadLock | ReadTryLock => take(ReadWrite, true),
        CriticalEnter => take(Critical, false),
        OrderedEnter => take(Ordered, false),
        SemaphoreWait | SemaphoreTryWait => take(Semaphore, false),
        MutexUnlock | SpinUnlock | ReadWriteUnlock | CriticalLeave | OrderedLeave | SemaphorePost => Some(Action::Give),
        ConditionWait => Some(Action::Wait),
        _ => None,
    }
}

/// What the function does to the lock at this address.
pub(super) fn object_of(function: SyncFunction, object: u64) -> u64 {
    match function {
        SyncFunction::OrderedEnter | SyncFunction::OrderedLeave => ORDERED,
        _ => object,
    }
}

/// Whether a lock function with this argument that returned this has the lock. Those of OpenMP do, unless the argument
/// says that they only tried: 1, or 2 where they return a `bool`. So do those that return nothing: 3. For others 0 is
/// success, and so is `EOWNERDEAD` of a robust mutex whose owner died. The functions return an `int`: the upper half of
/// the register says nothing.
pub(super) fn has_taken(function: SyncFunction, argument: u64, result: u64) -> bool {
    const EOWNERDEAD: u32 = 130;
    let result = result as u32;
    match function {
        _ if argument == 1 => result != 0,
        _ if argument == 2 => result as u8 != 0,
        _ if argument == 3 => true,
        SyncFunction::CriticalEnter | SyncFunction::OrderedEnter => true,
        _ => matches!(result, 0 | EOWNERDEAD),
    }
}

/// Whether who leaves the function has taken a mutex by it, or given one back.
pub(super) fn takes_mutex(function: SyncFunction, argument: u64, result: u64) -> Option<bool> {
    match action(function)? {
        Action::Take { kind: LockKind::Mutex, .. } => has_taken(function, argument, result).then_some(true),
        Action::Give if function == SyncFunction::MutexUnlock => Some(false),
        _ => None,
    }
}

/// Whether a thread that gives a lock so has taken it in a way that is not known, or another has for it, where it is
/// not known to have it. The runtime takes turns at `ordered` sections, and `pthread_spin_init` is a function that
/// gives, too.
pub(super) fn is_only_given_by_who_has_it(function: SyncFunction) -> bool {
    use SyncFunction::{CriticalLeave, MutexUnlock, ReadWriteUnlock};
    matches!(function, MutexUnlock | ReadWriteUnlock | CriticalLeave)
}

/// Whether a turn of a loop that waits may have this in it: functions that wait, and locks, which the turn must give
/// back.
pub(super) fn is_part_of_waiting(event: &Event) -> bool {
    match event {
        Event::FutexWait { .. } => true,
        Event::Enter { function, .. } | Event::Leave { function, .. } => {
            use SyncFunction::{SemaphorePost, SemaphoreWait, ValueWait, Yield};
            matches!(function, Yield | ValueWait)
                || !matches!(function, SemaphoreWait | SemaphorePost) && action(*function).is_some()
        }
        _ => false,
    }
}

/// Whether the function is a barrier at which threads meet.
pub(super) fn is_barrier(function: SyncFunction) -> bool {
    matches!(function, SyncFunction::BarrierWait | SyncFunction::TeamBarrier)
}

/// Whether the thread waits in the kernel from here on, until another wakes it.
pub(super) fn is_blocking(event: &Event) -> bool {
    matches!(event, Event::FutexWait { .. } | Event::Enter { function: SyncFunction::ConditionWait, .. })
}

/// All locks of a view: numbered by their addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct LockTable {
    locks: Vec<(u64, LockKind)>,
    /// How many lanes may have a semaphore at a time, where it is not one.
    most: FxHashMap<u64, u32>,
    /// By another address at which a lock of the program's own is given: its own.
    given_at: FxHashMap<u64, u64>,
    /// Mutexes, and locks of the program's own, that are a part of a barrier; with what all give back last.
    of_barriers: FxHashMap<u64, u64>,
}

impl LockTable {
    /// Those that were found, except mutexes of barriers, and semaphores that are no locks, by what each thread does
    /// with them. `values` are those that semaphores, and others, had first.
    pub fn new<'a>(
        mut found: FxHashMap<u64, LockKind>,
        of_barriers: FxHashMap<u64, u64>,
        semaphores: impl Iterator<Item = (&'a u64, &'a SemaphoreUse)>,
        values: impl Iterator<Item = (u64, u64)>,
        own: &OwnLocks,
    ) -> LockTable {
        found.retain(|object, _| !of_barriers.contains_key(object));
        for (semaphore, _) in semaphores.filter(|(_, used)| used.is_handed_over()) {
            if found.get(semaphore) == Some(&LockKind::Semaphore) {
                found.remove(semaphore);
            }
        }
        let mut most: FxHashMap<u64, u32> = FxHashMap::default();
        for (object, value) in values.filter(|(object, _)| found.get(object) == Some(&LockKind::Semaphore)) {
            let known = most.entry(object).or_default();
            *known = u32::try_from(value).unwrap_or(u32::MAX).max(*known);
        }
        for (word, can_share) in &own.words {
            found.entry(*word).or_insert(LockKind::Own { can_share: *can_share });
        }
        for word in &own.shares {
            found.entry(*word).or_insert(LockKind::Shares);
        }
        let mut locks: Vec<(u64, LockKind)> = found.into_iter().collect();
        locks.sort_unstable();
        LockTable { locks, most, given_at: own.given_at.clone(), of_barriers }
    }

    /// Whether lanes can share the lock of the program's own at an address; none where there is no such.
    pub fn is_own(&self, object: u64) -> Option<bool> {
        match self.locks[self.id(object)?.0 as usize].1 {
            LockKind::Own { can_share } => Some(can_share),
            _ => None,
        }
    }

    /// Whether a lane that takes what is at an address, as locks of the program's own are taken, can share it; none
    /// where there is no such.
    pub fn can_share(&self, object: u64) -> Option<bool> {
        match self.locks[self.id(object)?.0 as usize].1 {
            LockKind::Own { can_share } => Some(can_share),
            LockKind::Shares => Some(true),
            _ => None,
        }
    }

    /// What lanes give back last that meet at the barrier of which a mutex is a part; none where it is of no barrier.
    pub fn of_barrier(&self, object: u64) -> Option<u64> {
        self.of_barriers.get(&object).copied()
    }

    /// The address of the lock of the program's own that is given there.
    pub fn given_at(&self, address: u64) -> u64 {
        self.given_at.get(&address).copied().unwrap_or(address)
    }

    /// Whether what this function does to its object is no matter of locks.
    pub fn is_no_lock(&self, function: SyncFunction, object: u64) -> bool {
        use SyncFunction::{SemaphorePost, SemaphoreTryWait, SemaphoreWait};
        matches!(function, SemaphoreWait | SemaphoreTryWait | SemaphorePost) && self.id(object).is_none()
    }

    /// What a lane does that takes this lock; none where it is not known, or a part of a barrier.
    pub fn acquire(&self, lock: HeldLock) -> Option<Control> {
        let id = self.replayed(lock)?;
        Some(match self.most.get(&lock.object) {
            Some(most) if *most > 1 => Control::AcquireOneOf { lock: id, most: *most },
            _ if lock.shared => Control::AcquireShared(id),
            _ => Control::Acquire(id),
        })
    }

    /// The number of a lock that lanes wait for; none where it is not known, a part of a barrier, or only shared.
    pub fn replayed(&self, lock: HeldLock) -> Option<LockId> {
        let id = self.id(lock.object).filter(|_| self.of_barrier(lock.object).is_none())?;
        (self.locks[id.0 as usize].1 != LockKind::Shares).then_some(id)
    }

    /// The number of the lock at an address, if one was taken there.
    pub fn id(&self, object: u64) -> Option<LockId> {
        self.locks.binary_search_by_key(&object, |l| l.0).ok().map(|i| LockId(i as u32))
    }

    /// The address of the lock; none where it has none.
    pub fn address(&self, id: LockId) -> Option<u64> {
        self.locks.get(id.0 as usize).map(|(object, _)| *object).filter(|object| ![0, ORDERED].contains(object))
    }

    /// What a user would call the lock.
    pub fn name(&self, id: LockId, trace: &Trace) -> String {
        let Some((object, kind)) = self.locks.get(id.0 as usize).copied() else {
            return format!("unknown lock {}", id.0);
        };
        let kind = match kind {
            LockKind::Critical if object == 0 => return "unnamed critical section".into(),
            LockKind::Ordered => return "ordered sections".into(),
            LockKind::Critical => "critical section",
            LockKind::Semaphore => "semaphore",
            LockKind::Own { .. } => "own lock",
            LockKind::Shares => "shares of",
            LockKind::Mutex => "mutex",
            LockKind::SpinLock => "spin lock",
            LockKind::ReadWrite => "read-write lock",
        };
        let symbol = trace.symbol_of(Pc(object)).filter(|s| object - s.pc.0 < s.size);
        match symbol {
            Some(symbol) if symbol.pc.0 == object => format!("{kind} {object:#x} ({})", symbol.name),
            Some(symbol) => format!("{kind} {object:#x} ({}+{:#x})", symbol.name, object - symbol.pc.0),
            None => format!("{kind} {object:#x}"),
        }
    }
}

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldLock {
    pub object: u64,
    pub shared: bool,
    /// How often it was taken and not yet given back.
    count: u32,
}

/// The locks that a thread holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    held: Vec<HeldLock>,
    /// Given up for the time of a condition wait.
    waiting: Vec<HeldLock>,
}

impl Held {
    /// The thread takes a lock. The lock, unless the thread had it already.
    pub fn take(&mut self, object: u64, shared: bool) -> Option<HeldLock> {
        if let Some(lock) = self.held.iter_mut().find(|l| l.object == object) {
            lock.count += 1;
            return None;
        }
        self.held.push(HeldLock { object, shared, count: 1 });
        self.held.last().copied()
    }

    /// Whether the thread has the lock.
    pub fn has(&self, object: u64) -> bool {
        self.held.iter().any(|lock| lock.object == object)
    }

    /// The thread gives a lock back. The lock, when it has it no more.
    pub fn give(&mut self, object: u64) -> Option<HeldLock> {
        let at = self.held.iter().position(|l| l.object == object)?;
        self.held[at].count -= 1;
        (self.held[at].count == 0).then(|| self.held.remove(at))
    }

    /// The thread begins to wait for a condition, and gives up a mutex however often it has taken it.
    pub fn wait(&mut self, object: u64) -> Option<HeldLock> {
        let at = self.held.iter().position(|l| l.object == object)?;
        let lock = self.held.remove(at);
        self.waiting.push(lock);
        Some(lock)
    }

    /// The wait is over: the thread has the mutex as before.
    pub fn resume(&mut self, object: u64) -> Option<HeldLock> {
        let at = self.waiting.iter().rposition(|l| l.object == object)?;
        let lock = self.waiting.remove(at);
        self.held.push(lock);
        Some(lock)
    }

    /// The locks held, in the order in which they were taken.
    pub fn locks(&self) -> &[HeldLock] {
        &self.held
    }

    /// Forgets everything: the program was replaced by another.
    pub fn clear(&mut self) {
        self.held.clear();
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recursive_mutex_is_taken_and_given_once() {
        let mut held = Held::default();
        assert!(held.take(7, false).is_some());
        assert_eq!(held.take(7, false), None);
        assert_eq!(held.give(7), None);
        assert_eq!(held.give(7).map(|l| l.object), Some(7));
        assert_eq!(held.give(7), None);
    }

    #[test]
    fn a_condition_wait_gives_up_a_mutex_however_often_taken() {
        let mut held = Held::default();
        held.take(7, false);
        held.take(7, false);
        assert!(held.wait(7).is_some());
        assert!(held.locks().is_empty());
        assert!(held.resume(7).is_some());
        assert_eq!(held.give(7), None);
        assert!(held.give(7).is_some());
    }

    #[test]
    fn waiting_with_a_mutex_taken_before_the_recording_changes_nothing() {
        let mut held = Held::default();
        assert_eq!((held.wait(7), held.resume(7)), (None, None));
    }

    #[test]
    fn only_the_low_half_of_a_result_counts() {
        let has_taken = |argument, result| has_taken(SyncFunction::MutexTryLock, argument, result);
        assert!(has_taken(0, 0xdead_beef_0000_0000) && !has_taken(1, 0xdead_beef_0000_0000));
        assert!(has_taken(0, 130) && has_taken(1, 1));
        assert!(!has_taken(0, 16));
    }
}
