//! Functions of libraries by which lanes wait for others, and those that end such waits.

use super::Code;

/// Those that wait until another lane has done something.
const WAITS: &[&str] = &[
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_mutex_clocklock",
    "pthread_spin_lock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_timedwrlock",
    "pthread_join",
    "pthread_once",
    "sem_wait",
    "sem_timedwait",
    "sem_clockwait",
    "mtx_lock",
    "mtx_timedlock",
    "thrd_join",
    "call_once",
    "flockfile",
    "GOMP_critical_start",
    "GOMP_critical_name_start",
    "GOMP_atomic_start",
    "GOMP_ordered_start",
    "GOMP_doacross_wait",
    "GOMP_doacross_ull_wait",
    "__kmpc_critical",
    "__kmpc_critical_with_hint",
    "__kmpc_ordered",
    "__kmpc_doacross_wait",
    "__kmpc_set_lock",
    "__kmpc_set_nest_lock",
    "omp_set_lock",
    "omp_set_nest_lock",
    "_ZNSt6thread4joinEv",
    "__cxa_guard_acquire",
];

/// Those that wait and give back a lock meanwhile.
const WAITS_AND_FREES: &[&str] = &[
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "cnd_wait",
    "cnd_timedwait",
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
    "syscall",
];

/// Barriers.
const MEETS: &[&str] = &[
    "pthread_barrier_wait",
    "GOMP_barrier",
    "GOMP_loop_end",
    "GOMP_sections_end",
    "GOMP_taskwait",
    "__kmpc_barrier",
    "__kmpc_cancel_barrier",
    "__kmpc_reduce",
    "__kmpc_omp_taskwait",
];

/// Those that say whether another lane has something.
const TELLS: &[&str] = &[
    "pthread_mutex_trylock",
    "pthread_spin_trylock",
    "pthread_rwlock_tryrdlock",
    "pthread_rwlock_trywrlock",
    "sem_trywait",
    "sem_getvalue",
    "mtx_trylock",
    "__kmpc_test_lock",
    "__kmpc_test_nest_lock",
    "omp_test_lock",
    "omp_test_nest_lock",
];

/// Those that end the wait of others.
const FREES: &[&str] = &[
    "pthread_mutex_unlock",
    "pthread_spin_unlock",
    "pthread_rwlock_unlock",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "pthread_exit",
    "sem_post",
    "mtx_unlock",
    "cnd_signal",
    "cnd_broadcast",
    "thrd_exit",
    "funlockfile",
    "GOMP_critical_end",
    "GOMP_critical_name_end",
    "GOMP_atomic_end",
    "GOMP_ordered_end",
    "GOMP_doacross_post",
    "GOMP_doacross_ull_post",
    "__kmpc_end_critical",
    "__kmpc_end_ordered",
    "__kmpc_end_reduce",
    "__kmpc_end_reduce_nowait",
    "__kmpc_doacross_post",
    "__kmpc_unset_lock",
    "__kmpc_unset_nest_lock",
    "omp_unset_lock",
    "omp_unset_nest_lock",
    "_ZNSt18condition_variable10notify_oneEv",
    "_ZNSt18condition_variable10notify_allEv",
    "__cxa_guard_release",
];

/// What the function of this name has to do with waiting.
pub(super) fn known(name: &str) -> Code {
    let none = Code::default();
    // The C library has names with underscores in front, too.
    let plain = name.trim_start_matches('_');
    let is_in = |list: &[&str]| list.contains(&name) || list.contains(&plain);
    match () {
        () if is_in(WAITS) => Code { waits: true, ..none },
        () if is_in(WAITS_AND_FREES) => Code { waits: true, frees: true, ..none },
        () if is_in(MEETS) => Code { meets: true, ..none },
        () if is_in(TELLS) => Code { tells: true, ..none },
        () if is_in(FREES) => Code { frees: true, ..none },
        () => none,
    }
}
