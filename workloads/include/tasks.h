/* The frame of a kernel with many tasks per thread, as threads of a GPU have that were coarsened: thread i does tasks
 * i, i + threads, i + 2 * threads, …, one after the other, and what a task is does not depend on who does it. A program
 * defines PROGRAM and TASKS (how many tasks there are unless told), includes this file, and then defines `prepare()`,
 * `kernel(first)` and `check()`, which prints a line about the results and ends the program where one is wrong; main is
 * made by `RUN_TASKS`.
 *
 * `--region kernel` takes just the kernels out of a trace, one per lane. */
#ifndef WORKLOADS_TASKS_H
#define WORKLOADS_TASKS_H

#include <math.h>

#include <lockstep.h>

#include "crew.h"

static long threads = 4, tasks = TASKS;

static void prepare(void);
static void kernel(long first);
static void check(void);

/* Begins the row of numbers that belongs to a task, or to anything else that has a number. */
static inline uint64_t seed_of(uint64_t number) {
    number = (number + 1) * 0x9e3779b97f4a7c15u;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    return number ^ number >> 27;
}

/* The next of a row of numbers, 31 bits. */
static inline __attribute__((always_inline)) unsigned drawn_bits(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33);
}

/* The next of a row of numbers, from 0 up to but without 1. */
static inline __attribute__((always_inline)) double drawn(uint64_t *seed) {
    return (double)drawn_bits(seed) * 0x1p-31;
}

/* The end of a loop's turn, where it is decided by `variable` whether there is another: all ways through the body come
 * here, and the loop is left from here alone. Else compilers jump from where the variable is set to behind the loop,
 * and lanes that do so leave those behind with whom they have a turn to end. The empty lines count as instructions
 * where a compiler weighs whether a copy of the block would be cheap. */
#define END_OF_TURN(variable) __asm__ volatile("\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n" : "+r"(variable))

static AS_WRITTEN void *worker(void *argument) {
    kernel((long)(intptr_t)argument);
    return NULL;
}

static inline int run_tasks(const char *program, int count, char **arguments) {
    static pthread_t crew[MAX_THREADS];
    char usage[256];
    snprintf(usage, sizeof usage,
             "%s [-p THREADS] [-n TASKS]\n  -p THREADS  threads, 1 to %d (default 4)\n"
             "  -n TASKS    tasks of all threads together, 1 to 1000000 (default %ld)\n",
             program, (int)MAX_THREADS, tasks);
    int option;
    while ((option = getopt(count, arguments, "hp:n:")) != -1) {
        switch (option) {
        case 'p':
            threads = number_argument(usage, option, optarg, 1, MAX_THREADS);
            break;
        case 'n':
            tasks = number_argument(usage, option, optarg, 1, 1000000);
            break;
        case 'h':
            printf("usage: %s", usage);
            return 0;
        default:
            usage_error(usage);
        }
    }
    if (optind < count) {
        usage_error(usage);
    }
    prepare();
    start_threads(program, crew, 0, threads, worker);
    join_threads(program, crew, 0, threads);
    check();
    return 0;
}

#define RUN_TASKS                                                                                                      \
    int main(int count, char **arguments) {                                                                            \
        return run_tasks(PROGRAM, count, arguments);                                                                   \
    }

#endif
