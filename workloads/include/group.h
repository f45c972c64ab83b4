/* The frame of a kernel for groups of threads, as a GPU's blocks are: BLOCK threads, a compile-time constant, share a
 * buffer and a barrier. -p THREADS starts as many whole groups as have that many threads at least. A program defines
 * PROGRAM, `prepare(group)`, `kernel(group, thread)` and `check(group)`, which returns a checksum of the right results and
 * ends the program where one is wrong, and includes this file before them; main is made by `RUN_GROUPS`.
 *
 * `--region kernel` takes just the kernels out of a trace, one per lane. */
#ifndef WORKLOADS_GROUP_H
#define WORKLOADS_GROUP_H

#if defined(__NVPTX__) || defined(__AMDGCN__)
#include "device.h"
#else

#include "crew.h"

#ifndef BLOCK
#define BLOCK 16
#endif

enum { MAX_GROUPS = MAX_THREADS / BLOCK };

/* The loop as it is written: a turn of it is what this is about. */
#if defined(__clang__)
#define AS_LOOP _Pragma("clang loop unroll(disable) vectorize(disable) interleave(disable)")
#else
#define AS_LOOP
#endif

/* Of data that the kernel reads, in place of `static`. */
#define DATA static

/* Of use on a GPU. */
#define PER_LANE(variable) (void)variable

static pthread_barrier_t barriers[MAX_GROUPS];

/* Waits for the other threads of the group. */
static inline void meet(long group) {
    pthread_barrier_wait(&barriers[group]);
}

/* Numbers that look random, the same everywhere. */
static inline unsigned scrambled(unsigned number) {
    number = (number ^ number >> 16) * 0x45d9f3bu;
    number = (number ^ number >> 16) * 0x45d9f3bu;
    return number ^ number >> 16;
}

static void prepare(long group);
static void kernel(long group, unsigned thread);
static unsigned long check(long group);

static AS_WRITTEN void *worker(void *argument) {
    long id = (long)(intptr_t)argument;
    kernel(id / BLOCK, (unsigned)(id % BLOCK));
    return NULL;
}

static inline int run_groups(const char *program, int count, char **arguments, const char *usage) {
    static pthread_t threads[MAX_THREADS];
    long groups = (micro_threads(count, arguments, usage) + BLOCK - 1) / BLOCK;
    if (groups > MAX_GROUPS) {
        groups = MAX_GROUPS;
    }
    for (long group = 0; group < groups; group++) {
        if (pthread_barrier_init(&barriers[group], NULL, BLOCK) != 0) {
            fail(program, "no barrier for group %ld", group);
        }
        prepare(group);
    }
    start_threads(program, threads, 0, groups * BLOCK, worker);
    join_threads(program, threads, 0, groups * BLOCK);
    for (long group = 0; group < groups; group++) {
        printf("group %ld: %lu\n", group, check(group));
    }
    return 0;
}

#define RUN_GROUPS                                                                                                     \
    int main(int count, char **arguments) {                                                                            \
        return run_groups(PROGRAM, count, arguments, PROGRAM " [-p THREADS]\n");                                       \
    }

#endif
#endif
