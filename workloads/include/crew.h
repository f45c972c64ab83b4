/* Threads for the workloads: start as many as asked for, each with its number as the argument, and wait for them. */
#ifndef WORKLOADS_CREW_H
#define WORKLOADS_CREW_H

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "args.h"

/* Starts threads first..count on `worker`, each with its number as the argument. */
static inline void start_threads(const char *program, pthread_t *threads, long first, long count,
                                 void *(*worker)(void *)) {
    for (long id = first; id < count; id++) {
        int error = pthread_create(&threads[id], NULL, worker, (void *)(intptr_t)id);
        if (error != 0) {
            fail(program, "cannot start thread %ld: %s", id, strerror(error));
        }
    }
}

/* Waits for threads first..count. */
static inline void join_threads(const char *program, const pthread_t *threads, long first, long count) {
    for (long id = first; id < count; id++) {
        int error = pthread_join(threads[id], NULL);
        if (error != 0) {
            fail(program, "cannot join thread %ld: %s", id, strerror(error));
        }
    }
}

/* The only option of the micro programs: -p THREADS, 4 unless given. */
static inline long micro_threads(int count, char **arguments, const char *usage) {
    long threads = 4;
    int option;
    while ((option = getopt(count, arguments, "hp:")) != -1) {
        if (option == 'h') {
            printf("usage: %s", usage);
            exit(0);
        }
        if (option != 'p') {
            usage_error(usage);
        }
        threads = number_argument(usage, option, optarg, 1, MAX_THREADS);
    }
    if (optind < count) {
        usage_error(usage);
    }
    return threads;
}

#endif
