/* A loop in a loop of two turns, figures 2(b) and 2(c) of Anantpur and Govindarajan (CC 2014): half of the lanes run the
 * inner loop 10 times and then 15, the others 15 times and then 10. Each statement is a call of a function of its own, b1
 * to b3. Lanes that wait for each other behind the inner loop issue b2 30 times; 25 are enough where those that are done
 * with their first turn go on with the second.
 *
 * expect: region kernel
 * expect: lanes 4
 */
#define PROGRAM "trip_counts"

#include "blocks.h"

/* Instructions more in b2, at most 64: whether merging pays depends on what the inner loop's body takes. */
#ifndef WORK
#define WORK 0
#endif

BLOCK(1)
BLOCK(3)

static AS_WRITTEN long b2(long path) {
    long spent = path;
#pragma GCC unroll 64
    for (int i = 0; i < WORK; i++) {
        spent = spent * 3 + 1;
        OPAQUE(spent);
    }
    __asm__ volatile("" : : "r"(spent));
    OPAQUE(path);
    return path * 10 + 2;
}

static AS_WRITTEN long kernel(long lane) {
    long path = 0, turns = 2;
    /* Else the outer loop would be unrolled. */
    OPAQUE(turns);
    for (long i = 0; i < turns; i++) {
        RUN(1, path);
        path %= 1000000007;
        for (long j = 0; j < ((lane + i) % 2 == 0 ? 10 : 15); j++) {
            RUN(2, path);
            path %= 1000000007;
        }
        RUN(3, path);
        path %= 1000000007;
    }
    return path;
}

/* Digits by number: 1, 10 or 15 times 2, 3, and the same again with the other number. */
static long expected(long lane) {
    long first = lane % 2 == 0 ? 10 : 15, path = 0;
    for (long place = 0; place < 29; place++) {
        long digit = place == 0 || place == first + 2 ? 1 : place == first + 1 || place == 28 ? 3 : 2;
        path = (path * 10 + digit) % 1000000007;
    }
    return path;
}

#include "kernel.h"
