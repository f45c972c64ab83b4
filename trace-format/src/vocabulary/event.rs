//! What happened in a thread besides running blocks.

use serde::{Deserialize, Serialize};

use crate::{BlockId, ModuleId, Pc, ThreadId};

/// A position in the order of all threads' events: an event with a smaller number was seen earlier. Where a thread
/// begins to wait for a lock, or goes on behind giving one back, it may be earlier than that, right behind the thread's
/// last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Seq(pub u64);

/// A synchronisation or thread-runtime function, by what it does. Names of the C functions are in the docs of the
/// variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SyncFunction {
    /// `pthread_mutex_lock`, `_timedlock`, `_clocklock`; object: the mutex. Argument: 3 where the function returns
    /// nothing and so always has taken it, as those of GLib and libc++; likewise of the other locks.
    MutexLock = 0,
    /// `pthread_mutex_trylock`; argument: 1 where a result other than 0 says that the lock was taken
    /// (`g_mutex_trylock`), 2 where the lowest byte of the result says so (libc++); likewise of the other locks.
    MutexTryLock = 1,
    /// `pthread_mutex_unlock`.
    MutexUnlock = 2,
    /// `pthread_spin_lock`; object: the spin lock.
    SpinLock = 3,
    /// `pthread_spin_trylock`.
    SpinTryLock = 4,
    /// `pthread_spin_unlock`.
    SpinUnlock = 5,
    /// `pthread_rwlock_rdlock` and its timed variants; object: the lock.
    ReadLock = 6,
    /// `pthread_rwlock_tryrdlock`.
    ReadTryLock = 7,
    /// `pthread_rwlock_wrlock` and its timed variants.
    WriteLock = 8,
    /// `pthread_rwlock_trywrlock`.
    WriteTryLock = 9,
    /// `pthread_rwlock_unlock`.
    ReadWriteUnlock = 10,
    /// `pthread_cond_wait`, `_timedwait`, `_clockwait`, Rust's `Condvar::wait`; object: the condition variable,
    /// argument: the mutex.
    ConditionWait = 11,
    /// `pthread_cond_signal`.
    ConditionSignal = 12,
    /// `pthread_cond_broadcast`.
    ConditionBroadcast = 13,
    /// `sem_wait`, `sem_timedwait`, `sem_clockwait`; object: the semaphore.
    SemaphoreWait = 14,
    /// `sem_trywait`.
    SemaphoreTryWait = 15,
    /// `sem_post`.
    SemaphorePost = 16,
    /// `pthread_barrier_init`, `sem_init`; object: the barrier or semaphore, argument: how many threads the barrier
    /// waits for, or the semaphore's first value.
    BarrierInit = 17,
    /// `pthread_barrier_wait`, Rust's `Barrier::wait`; object: the barrier. With the argument 1: the wait of C++'s
    /// `std::barrier` or `std::latch`, which the thread has come to before. With 2: it comes there, and waits behind
    /// the function.
    BarrierWait = 18,
    /// `pthread_create`, `thrd_create`; object: the start routine.
    ThreadCreate = 19,
    /// `pthread_join` and its variants; object: the thread's handle.
    ThreadJoin = 20,
    /// A thread's start routine, as given to `pthread_create`; object: the routine. It calls the program's own code.
    ThreadBody = 21,
    /// `GOMP_parallel` and its variants, `__kmpc_fork_call`; object: the outlined body, argument: the number of threads
    /// asked for (0: the default).
    ParallelFork = 22,
    /// The outlined body of a parallel region, on each thread of the team; object: the body. It calls the program's own
    /// code.
    ParallelBody = 23,
    /// `GOMP_barrier`, `__kmpc_barrier`, and the loop and section ends that wait (`GOMP_loop_end`, …).
    TeamBarrier = 24,
    /// `GOMP_critical_start`, `GOMP_critical_name_start`, `__kmpc_critical`, `omp_set_lock`; object: the lock (0: the
    /// unnamed one). Argument: 1 for `omp_test_lock` and `omp_test_nest_lock`, which have taken the lock where their
    /// result is not 0.
    CriticalEnter = 25,
    /// `GOMP_critical_end`, `GOMP_critical_name_end`, `__kmpc_end_critical`, `omp_unset_lock`.
    CriticalLeave = 26,
    /// `GOMP_single_start`, `__kmpc_single`.
    Single = 27,
    /// `GOMP_ordered_start`, `__kmpc_ordered`.
    OrderedEnter = 28,
    /// `GOMP_ordered_end`, `__kmpc_end_ordered`.
    OrderedLeave = 29,
    /// `pthread_once`, `call_once`; object: the once flag. It may call the program's own code.
    Once = 30,
    /// `sched_yield`, `pthread_yield`, `nanosleep`, `usleep`: waiting that is not work.
    Yield = 31,
    /// `pthread_exit`, `thrd_exit`: never left.
    ThreadExit = 32,
    /// `GOMP_task`, `GOMP_taskloop`, `__kmpc_omp_task_alloc`: makes a task, or the tasks of a loop; object: the body,
    /// argument: for gcc, a checksum of the data that the task is given (the first 48 bytes, without a loop's bounds);
    /// for clang 0, and the result is the task's address. gcc's functions may run the task.
    TaskCreate = 33,
    /// A task's body, on the thread that runs it; object: the body, argument: the checksum of its data (gcc), or the
    /// task's address (clang). It calls the program's own code, and may stand inside a function that otherwise runs
    /// none of it: tasks are run by threads that wait.
    TaskBody = 34,
    /// `GOMP_teams_reg`, `__kmpc_fork_teams`; object: the body, argument: the number of teams asked for (0: the
    /// default).
    TeamsFork = 35,
    /// The body of a teams construct, once for each team, on its first thread; object: the body. It calls the program's
    /// own code.
    TeamsBody = 36,
    /// `GOMP_teams4`: the thread goes on with the next team of a target region, unless the result's lowest byte is 0;
    /// argument: whether it is the first.
    TeamsNext = 37,
    /// `GOMP_target_ext`, where no device takes the region; object: the body.
    TargetFork = 38,
    /// The body of a target region that this machine runs; object: the body. Its teams begin with
    /// [`SyncFunction::TeamsNext`]. It calls the program's own code.
    TargetBody = 39,
    /// `GOMP_doacross_wait`, `__kmpc_doacross_wait`; argument: the number of the iteration that is waited for, of a
    /// loop of several dimensions the first.
    DoacrossWait = 40,
    /// `GOMP_doacross_post`, `__kmpc_doacross_post`; argument: the number of the iteration that is done, likewise.
    DoacrossPost = 41,
    /// `std::atomic::wait` of C++, which returns once another value is found; object: where. With the argument 1: a
    /// semaphore of C++, which it is taken from; 2: a function that wakes those who wait there. Also Rust's
    /// `thread::park`, and `recv` of its channels; object: 0.
    ValueWait = 42,
}

impl SyncFunction {
    /// Every function, in the order of its code in the file.
    pub const ALL: [SyncFunction; 43] = {
        use SyncFunction::*;
        [
            MutexLock,
            MutexTryLock,
            MutexUnlock,
            SpinLock,
            SpinTryLock,
            SpinUnlock,
            ReadLock,
            ReadTryLock,
            WriteLock,
            WriteTryLock,
            ReadWriteUnlock,
            ConditionWait,
            ConditionSignal,
            ConditionBroadcast,
            SemaphoreWait,
            SemaphoreTryWait,
            SemaphorePost,
            BarrierInit,
            BarrierWait,
            ThreadCreate,
            ThreadJoin,
            ThreadBody,
            ParallelFork,
            ParallelBody,
            TeamBarrier,
            CriticalEnter,
            CriticalLeave,
            Single,
            OrderedEnter,
            OrderedLeave,
            Once,
            Yield,
            ThreadExit,
            TaskCreate,
            TaskBody,
            TeamsFork,
            TeamsBody,
            TeamsNext,
            TargetFork,
            TargetBody,
            DoacrossWait,
            DoacrossPost,
            ValueWait,
        ]
    };

    /// The function with this code in the file, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<SyncFunction> {
        SyncFunction::ALL.get(code as usize).copied()
    }

    /// Whether the program's own code runs inside it, so that its inside cannot be left out as a whole.
    #[must_use]
    pub fn calls_back(self) -> bool {
        use SyncFunction::*;
        matches!(self, ThreadBody | ParallelFork | ParallelBody | Once)
            || matches!(self, TaskCreate | TaskBody | TeamsFork | TeamsBody | TargetFork | TargetBody)
    }
}

/// Iterations of a worksharing loop that a thread was given, as numbers of the loop's variable as the runtime knows it
/// (clang counts from 0). Unsigned numbers of 64 bits are the signed ones of the same bits. All numbers are 0 where
/// what the call shares out are no iterations but `sections`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chunk {
    /// Which loop: the address after the call that gave them; for a piece of a taskloop, the first instruction of its
    /// body.
    pub site: Pc,
    /// The number of the first iteration.
    pub lower: i64,
    /// The number after the last, one step further. Older traces have it as the runtime gives it: of a loop with a
    /// `stride` it may lie after the loop's end.
    pub upper: i64,
    /// The step from one iteration to the next; 0 if it is unknown, because a team was made with its loop, or for a
    /// taskloop, and only its maker knew it.
    pub step: i64,
    /// The distance from the first iteration to the first one of the thread's next chunk, which the thread goes on to
    /// without a call, up to the loop's end; 0 if there is none.
    pub stride: i64,
}

impl Chunk {
    /// What a call gives that shares out no iterations.
    #[must_use]
    pub fn none(site: Pc) -> Chunk {
        Chunk { site, lower: 0, upper: 0, step: 0, stride: 0 }
    }

    /// Whether it is such.
    #[must_use]
    pub fn is_no_loops(&self) -> bool {
        *self == Chunk::none(self.site)
    }

    /// The order of this chunk among those of its loop: the first iteration's number, negated if the loop counts down.
    #[must_use]
    pub fn first(&self) -> i64 {
        let down = self.step < 0 || self.step == 0 && self.upper < self.lower;
        if down { self.lower.wrapping_neg() } else { self.lower }
    }

    /// How many iterations it has; none where the trace does not say, as the step is unknown. At most so many where the
    /// thread may go on to further chunks by itself (`stride` is not 0): the loop may end before.
    #[must_use]
    pub fn iterations(&self) -> Option<u64> {
        let (span, step) = (i128::from(self.upper.wrapping_sub(self.lower)), i128::from(self.step));
        (step != 0).then(|| u64::try_from((span + step - step.signum()) / step).ok()).flatten()
    }
}

/// How a thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadExit {
    /// It called exit, or its process did.
    Exited(i32),
    /// A signal killed its process.
    Killed(i32),
    /// It became another program by `execve` (the trace goes on in this thread), or was removed by another thread's.
    Replaced,
    /// The recording stopped while it was still running.
    StillRunning,
}

/// One event of a thread's stream. It stands between two instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The thread begins here: always the first item of a thread.
    ThreadStart {
        /// The thread that created it; none for the first thread of a process.
        parent: Option<ThreadId>,
        /// The kernel's number of it (0 in traces read from text).
        os_tid: u32,
        /// The stack pointer before its first instruction. Text traces start at 0.
        sp: u64,
        /// When.
        seq: Seq,
    },
    /// The thread ends here: always the last item of a thread, unless the writer died.
    ThreadEnd {
        /// How.
        exit: ThreadExit,
        /// When.
        seq: Seq,
    },
    /// The stack pointer before the next instruction, where it does not follow from the instruction before
    /// (after a signal was delivered, a return from a handler, an exec).
    SetSp(u64),
    /// Only the first `executed` instructions of the block ran (a signal, a fault or the end of the thread came
    /// between): 1 to the block's length minus 1. Stands where the block's own number would stand.
    Partial {
        /// The block.
        block: BlockId,
        /// How many of its instructions ran.
        executed: u32,
    },
    /// The next instruction is the first of this function, unless that was not recorded (see [`Event::Gap`]).
    Enter {
        /// The function.
        function: SyncFunction,
        /// The object's address, see [`SyncFunction`]; 0 where it has none.
        object: u64,
        /// A further argument, see [`SyncFunction`]; 0 where it has none.
        argument: u64,
        /// When.
        seq: Seq,
    },
    /// The function has returned (or was unwound): the next instruction is its caller's.
    Leave {
        /// The function.
        function: SyncFunction,
        /// What it returned, as the 64 bits of `rax`: 0 is success for the pthread functions. Without meaning where it
        /// was unwound, by `longjmp` or an exception.
        result: u64,
        /// When.
        seq: Seq,
    },
    /// The thread waited here until every thread of its warp had reached such a point. Only in traces read from text
    /// (`W`).
    WarpBarrier,
    /// The thread waited in the kernel at a futex (`FUTEX_WAIT` and its variants).
    FutexWait {
        /// The futex' address.
        address: u64,
        /// When.
        seq: Seq,
    },
    /// A signal is delivered: the next instruction is the handler's first.
    Signal {
        /// The signal's number.
        number: i32,
        /// The handler.
        handler: Pc,
    },
    /// The thread returned from a signal handler (`rt_sigreturn`).
    SignalReturn,
    /// A module was mapped.
    ModuleLoaded(ModuleId),
    /// A module was unmapped.
    ModuleUnloaded(ModuleId),
    /// The process forked; the child runs on untraced, or as the thread given.
    Fork {
        /// The kernel's number of the child process.
        child: u32,
        /// The child's first thread, where it is traced.
        thread: Option<ThreadId>,
    },
    /// The process became another program: a new module map begins.
    Exec,
    /// From here on the program runs outside of its window, up to the thread's next instruction in the trace, and this
    /// is not recorded. All other events are recorded, except waits at futexes: functions are entered and left, signals
    /// handled, stacks set. The last event before that next instruction that sets the stack pointer gives its value
    /// there.
    Gap,
    /// The thread was given iterations of a worksharing loop. The next instruction is after the call of OpenMP's
    /// runtime that gave them (`GOMP_loop_*_start`, `GOMP_loop_*_next`, `__kmpc_for_static_init_*`,
    /// `__kmpc_dispatch_next_*`). Or the thread runs a piece of a taskloop, whose [`SyncFunction::TaskBody`] it has
    /// just entered. From version 4 on.
    Chunk(Chunk),
}
