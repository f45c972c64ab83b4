// 32 threads that take locks, in one of eight ways: -DPROGRAM=NAME. The same ways were measured on a GPU, as the 32 lanes
// of a warp around atomicCAS: counters.csv.
#include <pthread.h>
#include <stdio.h>

#define THREADS 32
#define NUMBER_THEN_WORK 1
#define HALF_IN_LOCK 2
#define NESTED 3
#define SOME_LANES 4
#define ONE_LOCK 5
#define FOUR_LOCKS 6
#define OWN_LOCKS 7
#define ATOMIC_NUMBER 8

static pthread_mutex_t locks[THREADS];
static volatile unsigned shared, inner;
static unsigned sums[THREADS], results[THREADS];
static int taken;

// So many rounds of a generator of random numbers.
static __attribute__((noinline)) unsigned work(unsigned x, int rounds) {
    for (int i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u + (x >> 7);
    return x;
}

static void *lane(void *argument) {
    int t = (int)(long)argument;
    unsigned x = (unsigned)t;
#if PROGRAM == NUMBER_THEN_WORK
    pthread_mutex_lock(&locks[0]);
    unsigned number = shared;
    shared = number + 1;
    pthread_mutex_unlock(&locks[0]);
    x = work(number >> 20, 20000);
#elif PROGRAM == ATOMIC_NUMBER
    x = work((unsigned)__atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED) >> 20, 20000);
#elif PROGRAM == HALF_IN_LOCK
    for (int i = 0; i < 40; i++) {
        x = work(x, 300);
        pthread_mutex_lock(&locks[0]);
        shared = work(shared + x, 30);
        pthread_mutex_unlock(&locks[0]);
    }
#elif PROGRAM == NESTED
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&locks[0]);
        shared = work(shared, 20);
        pthread_mutex_lock(&locks[1]);
        inner = work(inner, 20);
        pthread_mutex_unlock(&locks[1]);
        pthread_mutex_unlock(&locks[0]);
        x = work(x, 500);
    }
#elif PROGRAM == SOME_LANES
    for (int i = 0; i < 40; i++) {
        x = work(x, 200);
        if (t % 4 == 0) {
            pthread_mutex_lock(&locks[0]);
            shared = work(shared, 100);
            pthread_mutex_unlock(&locks[0]);
        }
    }
#else // ONE_LOCK, FOUR_LOCKS, OWN_LOCKS
    int own = PROGRAM == ONE_LOCK ? 0 : PROGRAM == FOUR_LOCKS ? t & 3 : t;
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&locks[own]);
        sums[own] = work(sums[own], 500);
        pthread_mutex_unlock(&locks[own]);
    }
#endif
    results[t] = x;
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    unsigned sum = shared + inner + sums[0] + (unsigned)taken;
    for (int i = 0; i < THREADS; i++) pthread_mutex_init(&locks[i], NULL);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, lane, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) sum += results[i];
    printf("%u\n", sum);
    return 0;
}
