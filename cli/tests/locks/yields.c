// 32 threads in loops with an atomic operation, in one of two ways: -DPROGRAM=NAME. The same ways were measured on a
// GPU, as the 32 lanes of a warp: counters.csv. There lanes collide; threads hardly do. So each thread has cells of its
// own, which hold what a lane would find that ran in lockstep with the others.
#include <pthread.h>
#include <stdio.h>

#define THREADS 32
#define CAS_MAX 1
#define ATOMIC_IN_LOOP 2

enum { TURNS = 40 };

static unsigned results[THREADS];
static unsigned found[THREADS][TURNS][THREADS + 1]; // by lane and turn, what each try finds
static unsigned at_first[TURNS];                    // what all lanes read at the beginning of a turn

static unsigned value(unsigned lane, unsigned turn) { return (lane * 2654435761u + turn * 40503u) >> 8; }

// The tries of all lanes for the largest value, in rounds: the lowest lane that still has a larger one succeeds.
static void collide(void) {
    unsigned most = 0;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        unsigned old[THREADS], tries[THREADS] = {0}, left = 0;
        at_first[turn] = most;
        for (unsigned lane = 0; lane < THREADS; lane++) {
            old[lane] = most;
            left += old[lane] < value(lane, turn);
        }
        while (left > 0) {
            for (unsigned lane = 0; lane < THREADS; lane++) {
                if (old[lane] >= value(lane, turn)) continue;
                found[lane][turn][tries[lane]++] = most;
                if (old[lane] == most) most = value(lane, turn);
                old[lane] = most;
                left -= old[lane] >= value(lane, turn);
            }
        }
    }
}

static void *run(void *argument) {
    unsigned t = (unsigned)(long)argument, x = t;
#if PROGRAM == CAS_MAX
    for (unsigned turn = 0; turn < TURNS; turn++) {
        unsigned mine = value(t, turn), old = at_first[turn], *cell = found[t][turn];
        while (old < mine) {
            unsigned was = old;
            if (__atomic_compare_exchange_n(cell++, &was, mine, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
            old = was;
        }
        x = old;
        for (int k = 0; k < 60; k++) x = x * 1664525u + (x >> k % 5);
        results[t] += x;
    }
#else // ATOMIC_IN_LOOP
    static int sums[8];
    for (int i = 0; i < 40 + (int)(t & 7) * 5; i++) {
        __atomic_fetch_add(&sums[x & 7], i, __ATOMIC_RELAXED);
        x = x * 1664525u + (unsigned)i;
    }
    for (int k = 0; k < 3000; k++) x = x * 1664525u + (x >> k % 5);
    results[t] = x;
#endif
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    unsigned sum = 0;
    collide();
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) sum += results[i];
    printf("%u\n", sum);
    return 0;
}
