/* A phase between two others, with the markers of lockstep.h around it: `trace --markers` records it alone, with what other threads run meanwhile.
 *
 *     fill the row | LOCKSTEP_BEGIN | multiply odd elements, add to even ones | LOCKSTEP_END | add up
 *
 * Lanes part at each element of the phase, and nowhere else.
 *
 * expect: region kernel
 * expect: lanes 4
 */
#include <lockstep.h>

#define PROGRAM "marked_phase"
#define ELEMENTS 512

static long rows[1024][ELEMENTS];

__attribute__((noinline)) static long kernel(long lane) {
    long *row = rows[lane];
    for (long i = 0; i < ELEMENTS; i++) {
        row[i] = i ^ lane;
    }
    LOCKSTEP_BEGIN;
    for (long i = 0; i < ELEMENTS; i++) {
        if (row[i] & 1) {
            row[i] *= 3;
        } else {
            row[i] += lane;
        }
    }
    LOCKSTEP_END;
    long sum = 0;
    for (long i = 0; i < ELEMENTS; i++) {
        sum += row[i];
    }
    return sum;
}

static long expected(long lane) {
    long sum = 0;
    for (long i = 0; i < ELEMENTS; i++) {
        sum += (i ^ lane) % 2 == 1 ? 3 * (i ^ lane) : (i ^ lane) + lane;
    }
    return sum;
}

#include "kernel.h"
