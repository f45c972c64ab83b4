/* The frame of a micro program: thread number i runs `worker`, which calls `kernel(i)` once; the results are printed
 * in thread order after all have ended and compared with `expected(i)`, which computes them another way. A micro
 * program defines PROGRAM (its name), `kernel` and `expected`, and includes this file after them.
 *
 * `--region kernel` takes just the kernels out of a trace, one per lane. */
#ifndef WORKLOADS_KERNEL_H
#define WORKLOADS_KERNEL_H

#include "crew.h"

static long results[MAX_THREADS];

static AS_WRITTEN void *worker(void *argument) {
    long lane = (long)(intptr_t)argument;
    results[lane] = kernel(lane);
    return NULL;
}

int main(int count, char **arguments) {
    static pthread_t threads[MAX_THREADS];
    long lanes = micro_threads(count, arguments, PROGRAM " [-p THREADS]\n");
    start_threads(PROGRAM, threads, 0, lanes, worker);
    join_threads(PROGRAM, threads, 0, lanes);
    for (long lane = 0; lane < lanes; lane++) {
        printf("lane %ld: %ld\n", lane, results[lane]);
    }
    for (long lane = 0; lane < lanes; lane++) {
        if (results[lane] != expected(lane)) {
            fail(PROGRAM, "lane %ld computed %ld where %ld is right", lane, results[lane], expected(lane));
        }
    }
    return 0;
}

#endif
