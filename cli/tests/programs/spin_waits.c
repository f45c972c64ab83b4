/* Four threads, PHASES of uneven work, and a barrier of the program's own that spins without `pause`, in the way that
 * WAIT names: every turn of it is waiting.
 * What is left of a run does not depend on how the threads were scheduled. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { THREADS = 4 };

#ifndef PHASES
#define PHASES 24
#endif

/* The least work of a phase, in turns of a loop. */
#ifndef WORK
#define WORK 1000
#endif

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int arrived;
static volatile int phase;
static atomic_int atomic_phase;
static volatile int flags[THREADS];
static long sums[THREADS];

#if WAIT == 6 /* with an exchange */
static atomic_int lock;
#define TAKE while (atomic_exchange(&lock, 1)) { }
#define GIVE atomic_store(&lock, 0)
#elif WAIT == 7 /* with an exchange of a byte */
static atomic_flag lock = ATOMIC_FLAG_INIT;
#define TAKE while (atomic_flag_test_and_set(&lock)) { }
#define GIVE atomic_flag_clear(&lock)
#elif WAIT == 8 /* with a comparison and exchange */
static atomic_int lock;
#define TAKE for (int free = 0; !atomic_compare_exchange_weak(&lock, &free, 1); free = 0) { }
#define GIVE atomic_store(&lock, 0)
#elif WAIT == 9 /* looked at before it is tried, by a function */
static atomic_int lock;
static int taken(void) { return atomic_load(&lock) || atomic_exchange(&lock, 1); }
#define TAKE while (taken()) { }
#define GIVE atomic_store(&lock, 0)
#elif WAIT == 10 /* with the compiler's own exchange */
static int lock;
#define TAKE while (__sync_lock_test_and_set(&lock, 1)) { }
#define GIVE __sync_lock_release(&lock)
#elif WAIT == 11 /* with a bit of a word */
static unsigned lock;
#define TAKE while (__sync_fetch_and_or(&lock, 4) & 4) { }
#define GIVE __sync_fetch_and_and(&lock, ~4u)
#endif

static void arrive(int now) {
    pthread_mutex_lock(&mutex);
    if (++arrived == THREADS) {
        arrived = 0;
        atomic_phase = now + 1;
        phase = now + 1;
        pthread_cond_broadcast(&moved);
    }
    pthread_mutex_unlock(&mutex);
}

#if WAIT == 12
struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    int inside;
    volatile int is_arriving;
};
static struct meeting both = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 1 };

static void wait_for(struct meeting *at, int is_arriving) {
    pthread_mutex_unlock(&at->mutex);
    for (int i = 0; i < 350 && at->is_arriving != is_arriving; i++) { }
    pthread_mutex_lock(&at->mutex);
    while (at->is_arriving != is_arriving) pthread_cond_wait(&at->moved, &at->mutex);
}

static __attribute__((noinline)) void meet(struct meeting *at) {
    pthread_mutex_lock(&at->mutex);
    if (!at->is_arriving) wait_for(at, 1);
    if (++at->inside == THREADS) {
        at->is_arriving = 0;
        pthread_cond_broadcast(&at->moved);
    } else {
        wait_for(at, 0);
    }
    if (--at->inside == 0) {
        at->is_arriving = 1;
        pthread_cond_broadcast(&at->moved);
    }
    pthread_mutex_unlock(&at->mutex);
}
#endif

#if WAIT == 13
/* Longer, the more often it was called before: each doubling of that is another way through the code. */
static __attribute__((noinline)) void rest(unsigned turns) {
    int doublings = 0;
    for (unsigned left = turns; left >>= 1;) doublings++;
    if (turns > 4096) sched_yield();
    else if (turns > 16)
        for (int i = 0; i < doublings; i++) __asm__ volatile("nop");
}
#endif

static void barrier(int thread, int now) {
#if WAIT == 0 /* plain memory */
    (void)thread;
    arrive(now);
    while (phase == now) { }
#elif WAIT == 1 /* an atomic */
    (void)thread;
    arrive(now);
    while (atomic_load(&atomic_phase) == now) { }
#elif WAIT == 2 /* with sched_yield */
    (void)thread;
    arrive(now);
    while (phase == now) sched_yield();
#elif WAIT == 3 /* several blocks */
    (void)thread;
    arrive(now);
    for (;;) {
        int seen = phase;
        if (seen > now + 1) break;
        if (seen == now + 1) break;
        if (seen < 0) break;
    }
#elif WAIT == 4 /* a bounded spin that then blocks */
    (void)thread;
    arrive(now);
    for (int left = 4000; left > 0 && phase == now; left--) { }
    pthread_mutex_lock(&mutex);
    while (phase == now) pthread_cond_wait(&moved, &mutex);
    pthread_mutex_unlock(&mutex);
#elif WAIT == 5 /* one flag per thread, looked at one after another */
    flags[thread] = now + 1;
    for (;;) {
        int behind = 0;
        for (int i = 0; i < THREADS; i++) behind |= flags[i] <= now;
        if (!behind) break;
    }
#elif WAIT == 12 /* a barrier of its own object, of two phases, that spins for a short while and then blocks */
    (void)thread, (void)now;
    meet(&both);
#elif WAIT == 13 /* less and less often */
    (void)thread;
    arrive(now);
    for (unsigned turns = 1; phase == now; turns++) rest(turns);
#elif WAIT == 14 /* for a while without rest, and then between sleeps */
    static const struct timespec rest = { 0, 20000 };
    (void)thread;
    arrive(now);
    for (int turns = 0; phase == now;) {
        if (turns < 2000) turns++;
        else nanosleep(&rest, 0);
    }
#elif WAIT == 15 /* in several ways in turn: many turns go another way than the one before */
    (void)thread;
    arrive(now);
    for (unsigned turns = 1; phase == now; turns++) {
        if (turns < 76) __asm__ volatile("nop; nop");
        if (turns & 32) __asm__ volatile("nop");
        if ((turns & 3) < 2) __asm__ volatile("nop; nop; nop");
        if (!(turns & 65535)) sched_yield(); /* Else a run on a busy machine has hundreds of millions of turns. */
    }
#elif WAIT == 16 /* the same, but for rests so long that each wait is over behind the first */
    static const struct timespec rest = { 0, 100000000 }, late = { 0, 20000000 };
    static int ready;
    pthread_mutex_lock(&mutex); /* So that nobody is still resting. */
    if (++ready % THREADS == 0) pthread_cond_broadcast(&moved);
    while (ready < THREADS * (now + 1)) pthread_cond_wait(&moved, &mutex);
    pthread_mutex_unlock(&mutex);
    if (thread == 0) nanosleep(&late, 0);
    arrive(now);
    for (unsigned turns = 1; phase == now; turns++) {
        if (turns & 32) __asm__ volatile("nop");
        if ((turns & 3) < 2) __asm__ volatile("nop; nop; nop");
        if (!(turns & 255)) nanosleep(&rest, 0);
    }
#else /* a lock that is tried, held for long enough that others must wait for it */
    static const struct timespec while_held = { 0, 200000 };
    (void)thread;
    TAKE;
    if (++arrived == THREADS) {
        arrived = 0;
        phase = now + 1;
    }
    nanosleep(&while_held, 0);
    GIVE;
    while (phase == now) { }
#endif
}

static void *work(void *argument) {
    long thread = (long)argument;
    for (int now = 0; now < PHASES; now++) {
        long left = WORK * (1 + ((thread + now) & 3)), sum = 0;
        __asm__ volatile("1: add %1, %0\n sub $1, %1\n jnz 1b" : "+r"(sum), "+r"(left));
        sums[thread] += sum;
        barrier((int)thread, now);
    }
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    return 0;
}
