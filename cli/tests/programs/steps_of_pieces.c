/* Threads that go through the same steps, and in each take pieces of work until there are none: with a counter; with
 * LOCK under a lock, with EXCHANGE by comparison. All but the first take two at most, as threads do that come late.
 * With -fopenmp the threads are those of a parallel region. */
#include <pthread.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { THREADS = 4, STEPS = 4, PIECES = 64 };

static pthread_barrier_t barrier;
static int next[STEPS];
static int lengths[STEPS][PIECES];

#ifdef LOCK
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static inline int take(int step) {
    pthread_mutex_lock(&mutex);
    int piece = next[step]++;
    pthread_mutex_unlock(&mutex);
    return piece;
}
#elif defined(EXCHANGE)
static inline int take(int step) {
    int piece = __atomic_load_n(&next[step], __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&next[step], &piece, piece + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return piece;
}
#else
static inline int take(int step) {
    return __atomic_fetch_add(&next[step], 1, __ATOMIC_RELAXED);
}
#endif

static void *work(void *id) {
    for (int step = 0; step < STEPS; step++) {
        for (int left = id ? 2 : PIECES; left > 0; left--) {
            int piece = take(step); /* a piece */
            if (piece >= PIECES) {
                break;
            }
            int length = 0;
            for (unsigned long n = (unsigned long)(step * PIECES + piece + 27); n != 1; n = n % 2 ? 3 * n + 1 : n / 2) {
                length++;
            }
            lengths[step][piece] = length;
        }
        pthread_barrier_wait(&barrier);
    }
    return 0;
}

int main(void) {
    pthread_barrier_init(&barrier, 0, THREADS);
#ifdef _OPENMP
#pragma omp parallel num_threads(THREADS)
    work((void *)(long)omp_get_thread_num());
#else
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], 0, work, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
    }
#endif
    int sum = 0;
    for (int i = 0; i < STEPS * PIECES; i++) {
        sum += lengths[i / PIECES][i % PIECES];
    }
    return sum == 0;
}
