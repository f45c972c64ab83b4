/* Loops whose iterations need of each other what their names say. Each runs N turns at the line marked `loop`. */
#include <pthread.h>
#include <stdio.h>

enum { N = 300, BINS = 16 };
static int a[N + 2], b[N + 2], out[N + 2], histogram[BINS];
static double x[N + 2], sum_of_all;
static int shared;
static int *volatile where = &shared; /* The compiler does not know what it points at. */

__attribute__((noipa)) static int work(int n) { return n * n + 3; }

#if defined(DEALT)
#define SHARED _Pragma("omp parallel for schedule(dynamic, 5)")
#elif defined(PARTS)
#define SHARED _Pragma("omp parallel for schedule(static)")
#else
#define SHARED
#endif
#define LOOP SHARED for (int i = 1; i <= N; i++) /* loop */

#if defined(INDEPENDENT)
__attribute__((noipa)) static void run(void) {
    LOOP { out[i] = work(a[i]) + b[i + 1]; }
}
#elif defined(SUM)
__attribute__((noipa)) static void run(void) {
    double sum = 0;
    LOOP { sum += x[i] * work(a[i]); }
    sum_of_all = sum;
}
#elif defined(SUM_IN_MEMORY)
__attribute__((noipa)) static void run(void) {
    int *sum = where;
    LOOP { *sum += work(a[i]); }
}
#elif defined(MAXIMUM)
__attribute__((noipa)) static void run(void) {
    int most = 0;
    LOOP { most = a[i] > most ? a[i] : most; }
    shared = most;
}
#elif defined(COUNT)
__attribute__((noipa)) static void run(void) {
    int count = 0;
    LOOP {
        if (work(a[i]) % 3 == 0) count++;
    }
    shared = count;
}
#elif defined(TEMPORARY)
__attribute__((noipa)) static void run(void) {
    int *temporary = where;
    LOOP {
        *temporary = work(a[i]);
        out[i] = work(*temporary);
    }
}
#elif defined(PREFIX_SUM)
__attribute__((noipa)) static void run(void) {
    int sum = 0;
    LOOP {
        sum += work(a[i]);
        out[i] = sum;
    }
}
#elif defined(COMPACTION)
__attribute__((noipa)) static void run(void) {
    int count = 0;
    LOOP {
        if (work(a[i]) % 3 == 0) out[count++] = i;
    }
    shared = count;
}
#elif defined(STENCIL_IN_PLACE)
__attribute__((noipa)) static void run(void) {
    LOOP { x[i] = (x[i - 1] + x[i] + x[i + 1]) / 3; }
}
#elif defined(SHIFT)
__attribute__((noipa)) static void run(void) {
    LOOP { a[i] = work(a[i + 1]); }
}
#elif defined(DISTANCE)
__attribute__((noipa)) static void run(void) {
    LOOP {
        if (i > 7) a[i] = work(a[i - 7]);
    }
}
#elif defined(HISTOGRAM)
__attribute__((noipa)) static void run(void) {
    LOOP { histogram[work(a[i]) % BINS]++; }
}
#elif defined(ATOMIC_HISTOGRAM)
__attribute__((noipa)) static void run(void) {
    LOOP { __atomic_fetch_add(&histogram[work(a[i]) % BINS], 1, __ATOMIC_RELAXED); }
}
#elif defined(RECURRENCE)
__attribute__((noipa)) static void run(void) {
    unsigned state = 1;
    LOOP {
        state = state * 1664525u + 1013904223u;
        out[i] = (int)(state >> 8);
    }
}
#elif defined(CHAIN)
struct node {
    struct node *next;
    int value;
};
static struct node nodes[N];
__attribute__((noipa)) static void run(void) {
    for (int i = 0; i < N; i++) nodes[i] = (struct node){i + 1 < N ? &nodes[i + 1] : 0, i};
    struct node *node = nodes;
    LOOP {
        out[i] = work(node->value);
        node = node->next;
    }
}
#elif defined(STRIDE)
__attribute__((noipa)) static void run(void) {
    long step = where == &shared ? 1 : 2, at = 0;
    LOOP {
        out[at] = work(b[at]);
        at += step;
    }
}
#elif defined(DERIVED)
/* What is computed from the loop's counter is no accumulator. */
__attribute__((noipa)) static void run(void) {
    LOOP {
        int row = (i + a[i]) / 7, column = i - 7 * row;
        out[i] = work(row + column + i);
    }
}
#elif defined(SEVERAL_STEPS)
/* The counter is counted up in several places, by as much in each turn. */
__attribute__((noipa)) static void run(void) {
    int *at = out;
    for (int i = 1; i <= N;) { /* LOOP */
        if (work(a[i]) % 3 == 0) {
            *at++ = i++;
            continue;
        }
        __asm__ volatile("");
        *at++ = -i++;
    }
}
#elif defined(HORNER)
__attribute__((noipa)) static void run(void) {
    unsigned sum = 0;
    LOOP { sum = sum * 3 + (unsigned)a[i]; }
    shared = (int)sum;
}
#elif defined(LAST)
/* The sum that one iteration makes is used by the next, and is no accumulator. */
__attribute__((noipa)) static void run(void) {
    int last = 0;
    LOOP {
        out[i] = work(last);
        last = i + a[i];
    }
}
#elif defined(SEARCH)
/* The twenty-second iteration finds it. */
__attribute__((noipa)) static void run(void) {
    LOOP {
        if (work(a[i]) == 903) break;
        out[i] = b[i];
    }
}
#elif defined(ADDS)
__attribute__((noipa)) static void run(void) {
    LOOP { out[i] = a[i] + b[i]; }
}
#elif defined(SEARCH_BY_TEST)
__attribute__((noipa)) static void run(void) {
    int i = 1;
    while (i <= N && a[i] != 30) i++; /* LOOP */
    shared = i;
}
#elif defined(PREVIOUS)
__attribute__((noipa)) static void run(void) {
    int previous = 0;
    LOOP {
        out[i] = work(previous);
        previous = a[i];
    }
}
#endif

__attribute__((unused)) static void *run_in_thread(void *unused) {
    run();
    return unused;
}

int main(void) {
    for (int i = 0; i < N + 2; i++) {
        a[i] = i * 7 % 31;
        b[i] = i;
        x[i] = i;
    }
#if defined(THREADED)
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, run_in_thread, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
#else
    run();
#endif
    long sum = shared + (long)sum_of_all;
    for (int i = 0; i < N; i++) sum += out[i] + a[i] + (long)x[i];
    for (int i = 0; i < BINS; i++) sum += histogram[i];
    printf("%ld\n", sum);
    return 0;
}
