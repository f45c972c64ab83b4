// One kind of lock, or of barrier (KIND), in one form (FORM), on LANES threads: what the judge of waits builds.
//
// Forms of locks: 0 a short section first, then WORK turns beside each other; 1 all work in the lock; 2 half in one lock,
// half in another inside of it; 3 threads with odd numbers work in the lock, the others beside it.
// Barriers: in each of ROUNDS rounds one thread works, and the others wait for it.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { FUTEX_WAIT, FUTEX_WAKE }; // musl has no header of the kernel
enum { LANES = 8, SHORT = 200, WORK = 4000, ROUNDS = 16 };

__attribute__((noinline)) static long inside(long turns) {
    long s = 0;
    for (long i = 0; i < turns; i++) {
        s += s ^ i;
        __asm__ volatile("" : "+r"(s));
    }
    return s;
}

// 0 mutex, 1 tried, 2 timed, 3 spin lock, 4 written, 5 read, semaphores of 6 one and 7 two places, 8 C11's mutex, 9 tried,
// OpenMP's 10 critical section, 11 lock, 12 tried, 13 nested lock, 14 tried; of the program's own, by 15 an exchange and a
// store, 16 a futex; 17 barrier, 18 of a condition variable, 19 OpenMP's; 20 ordered sections; 21 semaphores, by which
// each thread hands on to the next; doacross loops whose iterations wait for 22 the one before, 23 the one before that;
// 24 another futex, counted down; 25 barrier of a mutex and of flags that are polled, then of a condition variable
#if KIND <= 2
static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void init(void) {}
#elif KIND == 3
static pthread_spinlock_t locks[2];
static void init(void) { for (int i = 0; i < 2; i++) pthread_spin_init(&locks[i], 0); }
#elif KIND == 4 || KIND == 5
static pthread_rwlock_t locks[2] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
static void init(void) {}
#elif KIND == 6 || KIND == 7
static sem_t locks[2];
static void init(void) { for (int i = 0; i < 2; i++) sem_init(&locks[i], 0, KIND - 5); }
#elif KIND == 8 || KIND == 9
static mtx_t locks[2];
static void init(void) { for (int i = 0; i < 2; i++) mtx_init(&locks[i], mtx_plain); }
#elif KIND == 11 || KIND == 12
static omp_lock_t locks[2];
static void init(void) { for (int i = 0; i < 2; i++) omp_init_lock(&locks[i]); }
#elif KIND == 13 || KIND == 14
static omp_nest_lock_t locks[2];
static void init(void) { for (int i = 0; i < 2; i++) omp_init_nest_lock(&locks[i]); }
#elif KIND == 15 || KIND == 16 || KIND == 24
static int locks[2];
static void init(void) {}
#elif KIND == 21
static sem_t turns[LANES];
static void init(void) { for (int i = 0; i < LANES; i++) sem_init(&turns[i], 0, i == 0); }
#elif KIND == 17
static pthread_barrier_t barrier;
static void init(void) { pthread_barrier_init(&barrier, 0, LANES); }
#elif KIND == 18
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int arrived, generation;
static void init(void) {}
#elif KIND == 25
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int here;
static volatile int arriving = 1;
static void init(void) {}
#else
static void init(void) {}
#endif

#ifdef HELD
static unsigned held = HELD, apart; // microseconds: in the lock, so that others wait in the kernel; and before it
#endif

static void take(int n) {
#if KIND == 0
    pthread_mutex_lock(&locks[n]);
#elif KIND == 1
    while (pthread_mutex_trylock(&locks[n])) sched_yield();
#elif KIND == 2
    struct timespec far = {.tv_sec = time(0) + 1000};
    pthread_mutex_timedlock(&locks[n], &far);
#elif KIND == 3
    pthread_spin_lock(&locks[n]);
#elif KIND == 4
    pthread_rwlock_wrlock(&locks[n]);
#elif KIND == 5
    pthread_rwlock_rdlock(&locks[n]);
#elif KIND == 6 || KIND == 7
    while (sem_wait(&locks[n]) && errno == EINTR) ;
#elif KIND == 8
    mtx_lock(&locks[n]);
#elif KIND == 9
    while (mtx_trylock(&locks[n]) != thrd_success) thrd_yield();
#elif KIND == 11
    omp_set_lock(&locks[n]);
#elif KIND == 12
    while (!omp_test_lock(&locks[n])) sched_yield();
#elif KIND == 13
    omp_set_nest_lock(&locks[n]);
#elif KIND == 14
    while (!omp_test_nest_lock(&locks[n])) sched_yield();
#elif KIND == 15
    while (__atomic_exchange_n(&locks[n], 1, __ATOMIC_ACQUIRE)) sched_yield();
#elif KIND == 16
    int none = 0;
    if (__atomic_compare_exchange_n(&locks[n], &none, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    while (__atomic_exchange_n(&locks[n], 2, __ATOMIC_ACQUIRE)) syscall(SYS_futex, &locks[n], FUTEX_WAIT, 2, 0, 0, 0);
#elif KIND == 24 // the second mutex of U. Drepper's "Futexes Are Tricky"
    int found = 0;
    if (__atomic_compare_exchange_n(&locks[n], &found, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    do {
        int taken = 1;
        if (found != 2) __atomic_compare_exchange_n(&locks[n], &taken, 2, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
        if (found == 2 || taken)
            syscall(SYS_futex, &locks[n], FUTEX_WAIT, 2, 0, 0, 0);
        found = 0;
    } while (!__atomic_compare_exchange_n(&locks[n], &found, 2, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
#endif
    (void)n;
}

static void give(int n) {
#if KIND <= 2
    pthread_mutex_unlock(&locks[n]);
#elif KIND == 3
    pthread_spin_unlock(&locks[n]);
#elif KIND == 4 || KIND == 5
    pthread_rwlock_unlock(&locks[n]);
#elif KIND == 6 || KIND == 7
    sem_post(&locks[n]);
#elif KIND == 8 || KIND == 9
    mtx_unlock(&locks[n]);
#elif KIND == 11 || KIND == 12
    omp_unset_lock(&locks[n]);
#elif KIND == 13 || KIND == 14
    omp_unset_nest_lock(&locks[n]);
#elif KIND == 15
    __atomic_store_n(&locks[n], 0, __ATOMIC_RELEASE);
#elif KIND == 16 || KIND == 24
#ifdef HELD
    usleep(held);
#endif
#if KIND == 24
    if (__atomic_fetch_sub(&locks[n], 1, __ATOMIC_RELEASE) != 1) {
        __atomic_store_n(&locks[n], 0, __ATOMIC_RELEASE);
        syscall(SYS_futex, &locks[n], FUTEX_WAKE, 1, 0, 0, 0);
    }
#else
    if (__atomic_exchange_n(&locks[n], 0, __ATOMIC_RELEASE) == 2) syscall(SYS_futex, &locks[n], FUTEX_WAKE, 1, 0, 0, 0);
#endif
#endif
    (void)n;
}

#if KIND == 25
// Waits with the mutex given back, for some time by looking.
static inline __attribute__((always_inline)) void poll(int what) {
    if (arriving == what) return;
    pthread_mutex_unlock(&mutex);
    for (volatile long i = 0; arriving != what && i < 3000; i++) ;
    while (pthread_mutex_trylock(&mutex)) sched_yield();
    while (arriving != what) pthread_cond_wait(&condition, &mutex);
}
#endif

static void meet(void) {
#if KIND == 17
    pthread_barrier_wait(&barrier);
#elif KIND == 18
    pthread_mutex_lock(&mutex);
    int mine = generation;
    if (++arrived == LANES) {
        arrived = 0;
        generation++;
        pthread_cond_broadcast(&condition);
    } else {
        while (mine == generation) pthread_cond_wait(&condition, &mutex);
    }
    pthread_mutex_unlock(&mutex);
#elif KIND == 19
#pragma omp barrier
#elif KIND == 25
    pthread_mutex_lock(&mutex);
    poll(1);
    if (++here == LANES) {
        arriving = 0;
        pthread_cond_broadcast(&condition);
    } else {
        poll(0);
    }
    if (--here == 0) {
        arriving = 1;
        pthread_cond_broadcast(&condition);
    }
    pthread_mutex_unlock(&mutex);
#endif
}

static long total[LANES], own[LANES];

// All threads begin together, so that they contend.
static pthread_barrier_t begin;

static void *work(void *a) {
    long id = (long)a;
#ifndef _OPENMP
    pthread_barrier_wait(&begin);
#endif
#ifdef HELD
    usleep(id * apart);
#endif
#if KIND >= 17 && KIND <= 19 || KIND == 25
    for (int round = 0; round < ROUNDS; round++) {
        if (round % LANES == id) own[id] += inside(WORK / 4);
        meet();
    }
#elif KIND == 21
    for (int round = 0; round < 4; round++) {
        sem_wait(&turns[id]);
        total[0] += inside(WORK / 4);
        sem_post(&turns[(id + 1) % LANES]);
    }
#elif KIND == 10 && FORM == 0
#pragma omp critical
    total[0] += inside(SHORT);
    own[id] += inside(WORK);
#elif KIND == 10
#pragma omp critical
    total[0] += inside(WORK);
#else
#include "forms.h"
#endif
    return a;
}

int main(int argc, char **argv) {
    init();
#ifdef HELD
    if (argc > 1) held = 0, apart = 5 * HELD; // no two threads ask for the lock at once
#endif
    pthread_barrier_init(&begin, 0, LANES);
#if defined _OPENMP && KIND == 20
#pragma omp parallel for ordered schedule(static, 1) num_threads(LANES)
    for (int i = 0; i < 4 * LANES; i++) {
        long v = inside(WORK / 4);
#pragma omp ordered
        total[0] += v + inside(WORK / 4);
    }
#elif defined _OPENMP && KIND >= 22
#pragma omp parallel for ordered(1) schedule(static, 1) num_threads(LANES)
    for (int i = 0; i < 4 * LANES; i++) {
#if KIND == 22
#pragma omp ordered depend(sink : i - 1)
#else
#pragma omp ordered depend(sink : i - 2)
#endif
        total[i % 2] += inside(WORK / 4);
#pragma omp ordered depend(source)
    }
#elif defined _OPENMP
#pragma omp parallel num_threads(LANES)
    work((void *)(long)omp_get_thread_num());
#else
    pthread_t threads[LANES];
    for (long i = 0; i < LANES; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < LANES; i++) pthread_join(threads[i], 0);
#endif
    printf("%ld\n", total[0] + own[3]);
}
