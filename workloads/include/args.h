/* Command-line arguments and failing, for every workload: numbers are read whole and checked against their range, and
 * whatever is wrong is said in one sentence on stderr. Exit status: 0 all results are right, 1 a result is wrong or
 * the system refused something, 2 bad arguments. */
#ifndef WORKLOADS_ARGS_H
#define WORKLOADS_ARGS_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The most threads that any workload starts. */
#ifndef MAX_THREADS
#define MAX_THREADS 1024
#endif

/* Keeps a function as it is written: not inlined, not cloned, not analysed by its callers. */
#if defined(__clang__)
#define AS_WRITTEN __attribute__((noinline, used))
#else
#define AS_WRITTEN __attribute__((noipa, used))
#endif

/* Hides from the compiler how `variable` came about, so that it cannot merge or unroll the code around it. */
#define OPAQUE(variable) __asm__ volatile("" : "+r"(variable))

/* Ends the program with status 1: a result is wrong, or something could not be had. */
static inline __attribute__((noreturn, format(printf, 2, 3))) void fail(const char *program, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* Ends the program with status 2 and the text of its usage. */
static inline __attribute__((noreturn)) void usage_error(const char *usage) {
    fprintf(stderr, "usage: %s", usage);
    exit(2);
}

/* The number that `text` says, the argument of option `-option`; it must lie in least..=most. */
static inline long number_argument(const char *usage, int option, const char *text, long least, long most) {
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "-%c takes a whole number from %ld to %ld, not \"%s\"\n", option, least, most, text);
        usage_error(usage);
    }
    return value;
}

/* Memory for `count` elements of `size` bytes, zeroed; ends the program where there is none. */
static inline void *zeroed(const char *program, size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL) {
        fail(program, "no memory for %zu elements of %zu bytes", count, size);
    }
    return memory;
}

#endif
