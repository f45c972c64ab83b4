//! Functions of libraries by which lanes wait for others, and those that are known to return whatever others do.

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

/// Those that neither wait nor end the wait of others. The C library's locks on files are given back where they are
/// taken.
const RETURNS: &[&str] = &[
    "printf", "fprintf", "vprintf", "vfprintf", "sprintf", "snprintf", "vsnprintf", "puts", "putchar", "fputs", "fputc",
    "putc", "fwrite", "fread", "fflush", "perror", "scanf", "fscanf", "sscanf", "fgets", "getc", "rand", "srand",
    "rand_r", "random", "drand48", "erand48", "lrand48", "exit", "abort", "__assert_fail", "malloc", "calloc", "realloc",
    "free", "posix_memalign", "aligned_alloc", "_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "clock",
    "time", "clock_gettime", "gettimeofday", "qsort", "getenv", "omp_get_thread_num", "omp_get_num_threads",
    "omp_get_wtime", "__kmpc_global_thread_num", "pthread_self", "sched_yield", "pthread_yield",
];

/// What the function of this name has to do with waiting, where that is known.
pub(super) fn known(name: &str) -> Option<Code> {
    let none = Code::default();
    // The C library has names with underscores in front, too.
    let plain = name.trim_start_matches('_');
    let is_in = |list: &[&str]| list.contains(&name) || list.contains(&plain);
    match () {
        () if is_in(WAITS) => Some(Code { waits: true, ..none }),
        () if is_in(WAITS_AND_FREES) => Some(Code { waits: true, frees: true, ..none }),
        () if is_in(MEETS) => Some(Code { meets: true, ..none }),
        () if is_in(TELLS) => Some(Code { tells: true, ..none }),
        () if is_in(RETURNS) => Some(none),
        () => None,
    }
}
