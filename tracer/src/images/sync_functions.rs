//! The functions whose calls are written to the trace, by name, and where their arguments are.
//!
//! Names are those of the POSIX and C11 thread functions and of the interfaces that compilers call for OpenMP: GOMP
//! (gcc's libgomp) and KMP (clang's libomp).
//!
//! Functions are known by their address, so two that share their code cannot be told apart. glibc's `pthread_spin_init`
//! is its `pthread_spin_unlock`, and shows up as an unlock of a lock that no thread holds.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use trace_format::SyncFunction::{self, *};

use crate::images::library_waits;
use crate::images::loop_calls::{self, LoopCall};
use crate::images::task_calls::{TaskCall, Words};
use crate::kernel::ptrace::Registers;

/// Where an argument of a function is found when the function is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The function has none.
    None,
    /// In the register of the argument with this number, from 0: rdi, rsi, rdx, rcx, r8, r9.
    Register(u8),
    /// There too, but only the lower half counts (an `int`).
    Int(u8),
    /// The number of threads that was set before by a call of its own.
    TeamSize,
    /// The address of the function itself.
    Itself,
    /// What tells tasks apart.
    Task(TaskCall),
    /// This number.
    Constant(u8),
    /// The 8 bytes of memory at the address in the register of the argument with this number.
    Word(u8),
}

impl Argument {
    /// Its value; `words` is what was read of memory ([`Role::words`]).
    #[must_use]
    pub fn value(self, registers: &Registers, team_size: u64, words: &[u64]) -> u64 {
        let register = |n: u8| match n {
            0 => registers.rdi,
            1 => registers.rsi,
            2 => registers.rdx,
            3 => registers.rcx,
            4 => registers.r8,
            _ => registers.r9,
        };
        match self {
            Argument::None => 0,
            Argument::Constant(number) => number.into(),
            Argument::Register(n) => register(n),
            Argument::Int(n) => register(n) & 0xffff_ffff,
            Argument::TeamSize => team_size,
            Argument::Itself => registers.rip,
            Argument::Task(call) => call.key(registers, words),
            Argument::Word(_) => words.first().copied().unwrap_or(0),
        }
    }
}

/// What a function of the table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its calls are written to the trace.
    Sync {
        /// As this function.
        function: SyncFunction,
        /// Where the object is.
        object: Argument,
        /// Where the further argument is.
        argument: Argument,
    },
    /// It sets the number of threads of the thread's next parallel region.
    SetsTeamSize(Argument),
    /// It gives the thread iterations of a loop.
    GivesChunk(LoopCall),
    /// The thread runs a parallel region by itself behind it, until it calls [`Role::EndsAlone`].
    BeginsAlone,
    /// That region has ended.
    EndsAlone,
    /// The thread runs the task in its third argument behind it, until it calls [`Role::EndsTask`].
    BeginsTask,
    /// That task has ended.
    EndsTask,
    /// It makes pieces of a taskloop of a task, whose body it shows ([`TaskCall::KmpTaskloop`]).
    MakesPieces,
}

impl Role {
    /// Whether its arguments are in the register of the argument with this number.
    #[must_use]
    pub fn names(self, number: u8) -> bool {
        let [first, second] = match self {
            Role::Sync { object, argument, .. } => [object, argument],
            Role::SetsTeamSize(size) => [size, Argument::None],
            Role::BeginsTask => [Argument::Register(2), Argument::None],
            Role::GivesChunk(_) | Role::MakesPieces | Role::BeginsAlone | Role::EndsAlone | Role::EndsTask => {
                [Argument::None; 2]
            }
        };
        [first, second].into_iter().any(|a| match a {
            Argument::Register(n) | Argument::Int(n) | Argument::Word(n) => n == number,
            Argument::Task(call) => call.names(number),
            Argument::None | Argument::Constant(_) | Argument::TeamSize | Argument::Itself => false,
        })
    }

    /// Whether the times at which it is entered and left matter. What other threads do hangs on when a lock is taken,
    /// and on when it is about to be given back; not on when a thread begins to wait for it, nor on when the thread
    /// goes on that has given it back.
    #[must_use]
    pub fn timed(self) -> [bool; 2] {
        match self {
            Role::Sync { function: MutexLock | SpinLock | ReadLock | WriteLock | CriticalEnter, .. }
            | Role::Sync { function: MutexTryLock | SpinTryLock | ReadTryLock | WriteTryLock, .. } => [false, true],
            Role::Sync { function: MutexUnlock | SpinUnlock | ReadWriteUnlock | CriticalLeave, .. } => [true, false],
            _ => [true; 2],
        }
    }

    /// What it has to do with tasks.
    #[must_use]
    pub fn task(self) -> Option<TaskCall> {
        match self {
            Role::Sync { argument: Argument::Task(call), .. } => Some(call),
            Role::MakesPieces => Some(TaskCall::KmpTaskloop),
            Role::Sync { .. } | Role::SetsTeamSize(_) | Role::GivesChunk(_) => None,
            Role::BeginsAlone | Role::EndsAlone | Role::BeginsTask | Role::EndsTask => None,
        }
    }

    /// What is read of memory where it is entered.
    #[must_use]
    pub fn words(self) -> Option<Words> {
        match self {
            Role::BeginsAlone => Some(Words::RETURN),
            Role::BeginsTask => Some(Words::ROUTINE),
            Role::Sync { argument: Argument::Word(register), .. } => Some(Words { register, offset: 0, count: 1 }),
            role => role.task().and_then(TaskCall::words),
        }
    }

    /// The register of the argument with this number has a routine that the function will run, or have run.
    #[must_use]
    pub fn routine(self) -> Option<u8> {
        match self {
            Role::Sync { function, object: Argument::Register(number), .. } if body(function).is_some() => Some(number),
            _ => None,
        }
    }

    /// The role of the routine that it is handed, and which that is; `word` reads memory, where it can be read.
    #[must_use]
    pub fn of_routine(self, registers: &Registers, word: impl Fn(u64) -> Option<u64>) -> Option<(u64, Role)> {
        let Role::Sync { function, object, argument } = self else { return None };
        self.routine()?;
        let routine = object.value(registers, 0, &[]);
        let argument = match argument {
            Argument::Task(call) => Argument::Task(call.body(registers, word)?),
            _ => Argument::None,
        };
        Some((routine, role(body(function)?, Argument::Itself, argument))).filter(|_| routine != 0)
    }
}

pub(super) const fn role(function: SyncFunction, object: Argument, argument: Argument) -> Role {
    Role::Sync { function, object, argument }
}

pub(super) const fn on_first(function: SyncFunction) -> Role {
    role(function, Argument::Register(0), Argument::None)
}

/// A function that takes its object, and has it where its result is not 0.
const fn tries(function: SyncFunction, object: u8) -> Role {
    role(function, Argument::Register(object), Argument::Constant(1))
}

/// The further argument of a function that always has its object when it returns.
pub(super) const RETURNS_NOTHING: Argument = Argument::Constant(3);

const fn on_third(function: SyncFunction) -> Role {
    role(function, Argument::Register(2), Argument::None)
}

pub(super) const fn alone(function: SyncFunction) -> Role {
    role(function, Argument::None, Argument::None)
}

const fn creates_task(body: u8, call: TaskCall) -> Role {
    role(TaskCreate, Argument::Register(body), Argument::Task(call))
}

const GOMP_FORK: Role = role(ParallelFork, Argument::Register(0), Argument::Int(2));
const KMP_FORK: Role = role(ParallelFork, Argument::Register(2), Argument::TeamSize);
const GOMP_TASK: Role = creates_task(0, TaskCall::GompCreates { is_loop: false });
const GOMP_TASKLOOP: Role = creates_task(0, TaskCall::GompCreates { is_loop: true });
const KMP_TASK: Role = creates_task(5, TaskCall::KmpCreates);
const GOMP_TARGET: Role = role(TargetFork, Argument::Register(1), Argument::None);
/// Until another thread gives something by the kernel.
const WAIT_FOR_OTHERS: Role = role(ValueWait, Argument::None, Argument::Constant(1));
const CREATE: Role = role(ThreadCreate, Argument::Register(2), Argument::None);
pub(super) const CONDITION_WAIT: Role = role(ConditionWait, Argument::Register(0), Argument::Register(1));
/// Every function, POSIX first, then C11, GOMP, KMP, the OpenMP locks, and those of GLib and stdio.
pub const TABLE: &[(&str, Role)] = &[
    ("pthread_mutex_lock", on_first(MutexLock)),
    ("pthread_mutex_timedlock", on_first(MutexLock)),
    ("pthread_mutex_clocklock", on_first(MutexLock)),
    ("pthread_mutex_trylock", on_first(MutexTryLock)),
    ("pthread_mutex_unlock", on_first(MutexUnlock)),
    ("pthread_spin_lock", on_first(SpinLock)),
    ("pthread_spin_trylock", on_first(SpinTryLock)),
    ("pthread_spin_unlock", on_first(SpinUnlock)),
    ("pthread_rwlock_rdlock", on_first(ReadLock)),
    ("pthread_rwlock_timedrdlock", on_first(ReadLock)),
    ("pthread_rwlock_clockrdlock", on_first(ReadLock)),
    ("pthread_rwlock_tryrdlock", on_first(ReadTryLock)),
    ("pthread_rwlock_wrlock", on_first(WriteLock)),
    ("pthread_rwlock_timedwrlock", on_first(WriteLock)),
    ("pthread_rwlock_clockwrlock", on_first(WriteLock)),
    ("pthread_rwlock_trywrlock", on_first(WriteTryLock)),
    ("pthread_rwlock_unlock", on_first(ReadWriteUnlock)),
    ("pthread_cond_wait", CONDITION_WAIT),
    ("pthread_cond_timedwait", CONDITION_WAIT),
    ("pthread_cond_clockwait", CONDITION_WAIT),
    ("pthread_cond_signal", on_first(ConditionSignal)),
    ("pthread_cond_broadcast", on_first(ConditionBroadcast)),
    ("sem_init", role(BarrierInit, Argument::Register(0), Argument::Int(2))),
    ("sem_wait", on_first(SemaphoreWait)),
    ("sem_timedwait", on_first(SemaphoreWait)),
    ("sem_clockwait", on_first(SemaphoreWait)),
    ("sem_trywait", on_first(SemaphoreTryWait)),
    ("sem_post", on_first(SemaphorePost)),
    ("pthread_barrier_init", role(BarrierInit, Argument::Register(0), Argument::Int(2))),
    ("pthread_barrier_wait", on_first(BarrierWait)),
    ("pthread_create", CREATE),
    ("pthread_join", on_first(ThreadJoin)),
    ("pthread_tryjoin_np", on_first(ThreadJoin)),
    ("pthread_timedjoin_np", on_first(ThreadJoin)),
    ("pthread_clockjoin_np", on_first(ThreadJoin)),
    ("pthread_exit", alone(ThreadExit)),
    ("pthread_once", on_first(Once)),
    ("pthread_yield", alone(Yield)),
    ("sched_yield", alone(Yield)),
    ("nanosleep", alone(Yield)),
    ("clock_nanosleep", alone(Yield)),
    ("usleep", alone(Yield)),
    ("sleep", alone(Yield)),
    ("semop", WAIT_FOR_OTHERS),
    ("semtimedop", WAIT_FOR_OTHERS),
    ("msgrcv", WAIT_FOR_OTHERS),
    ("mq_receive", WAIT_FOR_OTHERS),
    ("mq_timedreceive", WAIT_FOR_OTHERS),
    ("eventfd_read", WAIT_FOR_OTHERS),
    ("sigwait", WAIT_FOR_OTHERS),
    ("sigwaitinfo", WAIT_FOR_OTHERS),
    ("sigtimedwait", WAIT_FOR_OTHERS),
    ("sigsuspend", WAIT_FOR_OTHERS),
    ("thrd_create", role(ThreadCreate, Argument::Register(1), Argument::None)),
    ("thrd_join", on_first(ThreadJoin)),
    ("thrd_exit", alone(ThreadExit)),
    ("thrd_yield", alone(Yield)),
    ("thrd_sleep", alone(Yield)),
    ("call_once", on_first(Once)),
    ("mtx_lock", on_first(MutexLock)),
    ("mtx_timedlock", on_first(MutexLock)),
    ("mtx_trylock", on_first(MutexTryLock)),
    ("mtx_unlock", on_first(MutexUnlock)),
    ("cnd_wait", CONDITION_WAIT),
    ("cnd_timedwait", CONDITION_WAIT),
    ("cnd_signal", on_first(ConditionSignal)),
    ("cnd_broadcast", on_first(ConditionBroadcast)),
    ("GOMP_parallel", GOMP_FORK),
    ("GOMP_parallel_reductions", GOMP_FORK),
    ("GOMP_parallel_start", GOMP_FORK),
    ("GOMP_parallel_sections", GOMP_FORK),
    ("GOMP_parallel_sections_start", GOMP_FORK),
    ("GOMP_parallel_loop_static", GOMP_FORK),
    ("GOMP_parallel_loop_dynamic", GOMP_FORK),
    ("GOMP_parallel_loop_guided", GOMP_FORK),
    ("GOMP_parallel_loop_runtime", GOMP_FORK),
    ("GOMP_parallel_loop_nonmonotonic_dynamic", GOMP_FORK),
    ("GOMP_parallel_loop_nonmonotonic_guided", GOMP_FORK),
    ("GOMP_parallel_loop_nonmonotonic_runtime", GOMP_FORK),
    ("GOMP_parallel_loop_maybe_nonmonotonic_runtime", GOMP_FORK),
    ("GOMP_barrier", alone(TeamBarrier)),
    ("GOMP_barrier_cancel", alone(TeamBarrier)),
    ("GOMP_loop_end", alone(TeamBarrier)),
    ("GOMP_loop_end_cancel", alone(TeamBarrier)),
    ("GOMP_sections_end", alone(TeamBarrier)),
    ("GOMP_sections_end_cancel", alone(TeamBarrier)),
    ("GOMP_critical_start", alone(CriticalEnter)),
    ("GOMP_critical_end", alone(CriticalLeave)),
    ("GOMP_critical_name_start", on_first(CriticalEnter)),
    ("GOMP_critical_name_end", on_first(CriticalLeave)),
    ("GOMP_atomic_start", alone(CriticalEnter)),
    ("GOMP_atomic_end", alone(CriticalLeave)),
    ("GOMP_single_start", alone(Single)),
    ("GOMP_single_copy_start", alone(Single)),
    ("GOMP_ordered_start", alone(OrderedEnter)),
    ("GOMP_ordered_end", alone(OrderedLeave)),
    ("GOMP_doacross_wait", role(DoacrossWait, Argument::None, Argument::Register(0))),
    ("GOMP_doacross_ull_wait", role(DoacrossWait, Argument::None, Argument::Register(0))),
    ("GOMP_doacross_post", role(DoacrossPost, Argument::None, Argument::Word(0))),
    ("GOMP_doacross_ull_post", role(DoacrossPost, Argument::None, Argument::Word(0))),
    ("__kmpc_doacross_wait", role(DoacrossWait, Argument::None, Argument::Word(2))),
    ("__kmpc_doacross_post", role(DoacrossPost, Argument::None, Argument::Word(2))),
    ("__kmpc_fork_call", KMP_FORK),
    ("__kmpc_fork_call_if", KMP_FORK),
    ("__kmpc_serialized_parallel", Role::BeginsAlone),
    ("__kmpc_end_serialized_parallel", Role::EndsAlone),
    ("__kmpc_fork_teams", role(TeamsFork, Argument::Register(2), Argument::None)),
    ("GOMP_teams_reg", role(TeamsFork, Argument::Register(0), Argument::Int(2))),
    ("GOMP_target", GOMP_TARGET),
    ("GOMP_target_ext", GOMP_TARGET),
    ("GOMP_teams4", role(TeamsNext, Argument::None, Argument::Int(3))),
    ("GOMP_task", GOMP_TASK),
    ("GOMP_taskloop", GOMP_TASKLOOP),
    ("GOMP_taskloop_ull", GOMP_TASKLOOP),
    ("__kmpc_omp_task_alloc", KMP_TASK),
    ("__kmpc_omp_target_task_alloc", KMP_TASK),
    ("__kmpc_omp_task_begin_if0", Role::BeginsTask),
    ("__kmpc_omp_task_complete_if0", Role::EndsTask),
    ("__kmpc_taskloop", Role::MakesPieces),
    ("__kmpc_taskloop_5", Role::MakesPieces),
    ("__kmpc_push_num_threads", Role::SetsTeamSize(Argument::Int(2))),
    ("__kmpc_barrier", alone(TeamBarrier)),
    ("__kmpc_cancel_barrier", alone(TeamBarrier)),
    ("__kmpc_critical", on_third(CriticalEnter)),
    ("__kmpc_critical_with_hint", on_third(CriticalEnter)),
    ("__kmpc_end_critical", on_third(CriticalLeave)),
    ("__kmpc_set_lock", on_third(CriticalEnter)),
    ("__kmpc_set_nest_lock", on_third(CriticalEnter)),
    ("__kmpc_test_lock", tries(CriticalEnter, 2)),
    ("__kmpc_test_nest_lock", tries(CriticalEnter, 2)),
    ("__kmpc_unset_lock", on_third(CriticalLeave)),
    ("__kmpc_unset_nest_lock", on_third(CriticalLeave)),
    ("__kmpc_single", alone(Single)),
    ("__kmpc_ordered", alone(OrderedEnter)),
    ("__kmpc_end_ordered", alone(OrderedLeave)),
    ("omp_set_lock", on_first(CriticalEnter)),
    ("omp_set_nest_lock", on_first(CriticalEnter)),
    ("omp_unset_lock", on_first(CriticalLeave)),
    ("omp_test_lock", tries(CriticalEnter, 0)),
    ("omp_test_nest_lock", tries(CriticalEnter, 0)),
    ("omp_unset_nest_lock", on_first(CriticalLeave)),
    ("g_mutex_lock", role(MutexLock, Argument::Register(0), RETURNS_NOTHING)),
    ("g_mutex_trylock", tries(MutexTryLock, 0)),
    ("g_mutex_unlock", on_first(MutexUnlock)),
    ("g_cond_wait", CONDITION_WAIT),
    ("g_cond_wait_until", CONDITION_WAIT),
    ("g_cond_signal", on_first(ConditionSignal)),
    ("g_cond_broadcast", on_first(ConditionBroadcast)),
    ("flockfile", role(MutexLock, Argument::Register(0), RETURNS_NOTHING)),
    ("ftrylockfile", on_first(MutexTryLock)),
    ("funlockfile", on_first(MutexUnlock)),
];

/// The role of the function with this name, if it has one. glibc's static archive knows some of them by names with
/// underscores in front only, which are taken too.
#[must_use]
pub fn by_name(name: &str) -> Option<Role> {
    static BY_NAME: LazyLock<FxHashMap<&str, Role>> = LazyLock::new(|| TABLE.iter().copied().collect());
    let known =
        BY_NAME.get(name).or_else(|| BY_NAME.get(name.trim_start_matches('_')).filter(|_| name.starts_with("__")));
    let known = known.copied().or_else(|| loop_calls::by_name(name).map(Role::GivesChunk));
    known.or_else(|| library_waits::by_name(name))
}

/// What a routine is that is handed to this function.
const fn body(function: SyncFunction) -> Option<SyncFunction> {
    match function {
        ThreadCreate => Some(ThreadBody),
        ParallelFork => Some(ParallelBody),
        TaskCreate => Some(TaskBody),
        TeamsFork => Some(TeamsBody),
        TargetFork => Some(TargetBody),
        _ => None,
    }
}

/// Whether the number of threads that was asked for before is of no later region.
#[must_use]
pub fn takes_team_size(function: SyncFunction) -> bool {
    matches!(function, ThreadCreate | ParallelFork)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = TABLE.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn every_function_but_the_bodies_has_a_name() {
        for function in SyncFunction::ALL {
            let named = TABLE.iter().any(|(_, r)| matches!(r, Role::Sync { function: f, .. } if *f == function));
            assert_eq!(
                named,
                !matches!(function, ThreadBody | ParallelBody | TaskBody | TeamsBody | TargetBody),
                "{function:?}"
            );
        }
    }

    #[test]
    fn names_with_underscores_in_front_are_known() {
        assert_eq!(by_name("__pthread_mutex_lock"), by_name("pthread_mutex_lock"));
        assert_eq!(by_name("___pthread_mutex_lock"), by_name("pthread_mutex_lock"));
        assert!(by_name("__kmpc_barrier").is_some());
        assert!(by_name("_pthread_mutex_lock").is_none(), "one underscore is a name of the program's own");
        assert!(by_name("pthread_mutex_init").is_none());
    }
}
