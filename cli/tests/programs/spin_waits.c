/* Four threads, 24 phases of uneven work, and a barrier of the program's own that spins without `pause`, in the way that WAIT names: every turn of it is waiting.
 * What is left of a run does not depend on how the threads were scheduled. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 4, PHASES = 24 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int arrived;
static volatile int phase;
static atomic_int atomic_phase;
static volatile int flags[THREADS];
static long sums[THREADS];

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
#elif WAIT == 6 /* a lock that is tried with an exchange */
    static atomic_int lock;
    (void)thread;
    while (atomic_exchange(&lock, 1)) { }
    if (++arrived == THREADS) {
        arrived = 0;
        phase = now + 1;
    }
    atomic_store(&lock, 0);
    while (phase == now) { }
#endif
}

static void *work(void *argument) {
    long thread = (long)argument;
    for (int now = 0; now < PHASES; now++) {
        long left = 1000 * (1 + ((thread + now) & 3)), sum = 0;
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
