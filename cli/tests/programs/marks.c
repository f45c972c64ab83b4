/* The three patterns of figure 2 of Damani et al. (CGO 2020) with marks: -DPATTERN=1 is iteration delay, 2 loop merge, 3 a
 * common call, 4 two predictions at once, 5 a function with marks that is inlined twice, 6 a common call through another
 * function, 7 calls of one function in two regions. Each lane goes its own way. */
#include <lockstep.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 8 };
static unsigned table[64];

static unsigned next(unsigned *seed) { return *seed = *seed * 1664525u + 1013904223u, *seed >> 16; }

static unsigned __attribute__((noinline)) mixed(unsigned at, unsigned steps) {
    unsigned sum = at;
    for (unsigned i = 0; i < steps; i++)
        sum = (sum << 5 | sum >> 27) ^ table[(sum + i) % 64];
    return sum;
}

#if defined(__clang__) || defined(__cplusplus)
LOCKSTEP_APART
#endif
static unsigned shade(unsigned at) { return mixed(at, 12) * 3 + 1; }

#if PATTERN == 6
#if defined(__clang__)
LOCKSTEP_APART
#endif
static unsigned dim(unsigned at) { return shade(at ^ 7) / 5; }
#endif

#if PATTERN == 5
static inline __attribute__((always_inline)) unsigned merged(unsigned seed, unsigned turns) {
    unsigned sum = 0;
    LOCKSTEP_PREDICT(body);
    for (unsigned i = 0; i < turns; i++) {
        unsigned trips = next(&seed) % 17;
        for (unsigned j = 0; j < trips; j++) {
            LOCKSTEP_RECONVERGE(body);
            sum ^= table[(sum + j) % 64] * 2654435761u;
            sum = sum << 7 | sum >> 25;
        }
        sum += mixed(sum, 1);
    }
    return sum;
}
#endif

static void *work(void *argument) {
    unsigned seed = (unsigned)(long)argument * 2654435761u + 12345, sum = 0;
#if PATTERN == 1
    LOCKSTEP_PREDICT(body);
    for (int i = 0; i < 40; i++) {
        if (next(&seed) % 5 == 0) {
            LOCKSTEP_RECONVERGE(body);
            sum += mixed(sum + seed, 9);
        }
        sum ^= table[seed % 64];
    }
#elif PATTERN == 2
    LOCKSTEP_PREDICT_SOFT(body, 6);
    for (int i = 0; i < 40; i++) {
        unsigned trips = next(&seed) % 21;
        for (unsigned j = 0; j < trips; j++) {
            LOCKSTEP_RECONVERGE(body);
            sum ^= table[(sum + j) % 64] * 2654435761u;
            sum = sum << 7 | sum >> 25;
        }
        sum += mixed(sum, 1);
    }
#elif PATTERN == 3
    LOCKSTEP_PREDICT_FUNCTION(shade);
    for (int i = 0; i < 40; i++) {
        if (next(&seed) % 2)
            sum += shade(sum);
        else
            sum ^= shade(seed) / 3;
    }
#elif PATTERN == 4
    LOCKSTEP_PREDICT(one);
    LOCKSTEP_PREDICT_SOFT(other, 4);
    for (int i = 0; i < 40; i++) {
        if (next(&seed) % 3 == 0) {
            LOCKSTEP_RECONVERGE(one);
            sum += mixed(sum + seed, 9);
        } else {
            LOCKSTEP_RECONVERGE(other);
            sum ^= mixed(seed, 7) / 3;
        }
    }
#elif PATTERN == 6
    for (int i = 0; i < 40; i++) {
        LOCKSTEP_PREDICT_FUNCTION(shade);
        if (next(&seed) % 2)
            sum += shade(sum);
        else
            sum ^= dim(seed) / 3;
    }
#elif PATTERN == 7
    for (int i = 0; i < 40; i++) {
        LOCKSTEP_PREDICT_FUNCTION(shade);
        if (next(&seed) % 2)
            sum += shade(sum);
        else
            sum ^= shade(seed) / 3;
        sum ^= table[seed % 64];
        LOCKSTEP_PREDICT_FUNCTION(shade);
        if (next(&seed) % 3)
            sum ^= shade(sum + seed);
        else
            sum -= shade(seed ^ 5) / 7;
    }
#else
    sum = merged(seed, 12);
    sum += merged(seed ^ sum, 9);
#endif
    return (void *)(long)sum;
}

int main(void) {
    pthread_t threads[THREADS];
    unsigned long all = 0;
    for (unsigned i = 0; i < 64; i++)
        table[i] = i * i * 2246822519u + 1;
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], 0, work, (void *)i))
            return 1;
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        all += (unsigned long)sum;
    }
    return printf("%lu\n", all) < 0;
}
