/* The frame of the synthetic kernels: two nested loops, in the inner one a branch whose one arm works on `a` and `b`
 * only, the other on `p` and `q` only, all of them in the group's buffer. A program defines PROGRAM and two functions,
 * `one(x, y)` and `other(x, y)`, which say what each arm does to its two numbers; the kernel is BODY. */
#ifndef WORKLOADS_SYNTHETIC_H
#define WORKLOADS_SYNTHETIC_H

#include "group.h"

enum { OUTER = 4, INNER = 12 };

struct numbers {
    unsigned a[BLOCK], b[BLOCK], p[BLOCK], q[BLOCK], noise[64];
};

static struct numbers shared[MAX_GROUPS];
static unsigned memory[MAX_GROUPS][4][BLOCK];

static void prepare(long group) {
    for (unsigned i = 0; i < 4 * BLOCK; i++) {
        memory[group][i / BLOCK][i % BLOCK] = scrambled(i + 977 * (unsigned)group);
    }
}

/* Copies the numbers into the buffer and back, and runs the loops between. */
#define KERNEL(BRANCH)                                                                                                 \
    static AS_WRITTEN void kernel(long group, unsigned t) {                                                            \
        struct numbers *s = &shared[group];                                                                            \
        unsigned(*m)[BLOCK] = memory[group];                                                                           \
        for (unsigned i = t; i < 64; i += BLOCK) {                                                                     \
            s->noise[i] = scrambled(i * 7);                                                                            \
        }                                                                                                              \
        s->a[t] = m[0][t], s->b[t] = m[1][t], s->p[t] = m[2][t], s->q[t] = m[3][t];                                    \
        meet(group);                                                                                                   \
        AS_LOOP for (unsigned i = 0; i < OUTER; i++) {                                                                 \
            AS_LOOP for (unsigned j = 0; j < INNER; j++) {                                                             \
                if ((t ^ j) & 1) {                                                                                     \
                    BRANCH(one, s->a[t], s->b[t])                                                                      \
                } else {                                                                                               \
                    BRANCH(other, s->p[t], s->q[t])                                                                    \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        meet(group);                                                                                                   \
        m[0][t] = s->a[t], m[1][t] = s->b[t], m[2][t] = s->p[t], m[3][t] = s->q[t];                                    \
    }                                                                                                                  \
    static void one_step(const struct numbers *s, unsigned *x, unsigned *y) { BRANCH(one, *x, *y) }                     \
    static void other_step(const struct numbers *s, unsigned *x, unsigned *y) { BRANCH(other, *x, *y) }

static void one_step(const struct numbers *s, unsigned *x, unsigned *y);
static void other_step(const struct numbers *s, unsigned *x, unsigned *y);

/* The same arms, thread by thread and outside of the kernel: every turn on two numbers of its own. */
static unsigned long check(long group) {
    unsigned long sum = 0;
    for (unsigned t = 0; t < BLOCK; t++) {
        unsigned right[4];
        for (unsigned i = 0; i < 4; i++) {
            right[i] = scrambled(i * BLOCK + t + 977 * (unsigned)group);
        }
        for (unsigned turn = 0; turn < OUTER * INNER; turn++) {
            unsigned first = (t ^ turn % INNER) & 1 ? 0 : 2;
            void (*volatile step)(const struct numbers *, unsigned *, unsigned *) = first == 0 ? one_step : other_step;
            step(&shared[group], &right[first], &right[first + 1]);
        }
        for (unsigned i = 0; i < 4; i++) {
            if (memory[group][i][t] != right[i]) {
                fail(PROGRAM, "thread %u of group %ld has %u where %u is right", t, group, memory[group][i][t], right[i]);
            }
            sum = sum * 31 + right[i];
        }
    }
    return sum;
}

#endif
