/* Bitonic sort of BLOCK numbers in the group's buffer: a thread compares its number with one that is 2^n away and swaps
 * the two, upwards or downwards by a bit of its own number. BLOCK is constant, so that compilers unroll both loops. */
#define PROGRAM "bitonic"

#include "group.h"

static int shared[MAX_GROUPS][BLOCK];

static int number(long group, unsigned place) {
    return (int)(scrambled(place + 31 * (unsigned)group) >> 1);
}

static void prepare(long group) {
    for (unsigned i = 0; i < BLOCK; i++) {
        shared[group][i] = number(group, i);
    }
}

static inline void swap(int *one, int *other) {
    int kept = *one;
    *one = *other;
    *other = kept;
}

static AS_WRITTEN void kernel(long group, unsigned t) {
    int *s = shared[group];
    for (unsigned k = 2; k <= BLOCK; k *= 2) {
        for (unsigned j = k / 2; j > 0; j /= 2) {
            unsigned with = t ^ j;
            if (with > t) {
                if ((t & k) == 0) {
                    if (s[with] < s[t]) {
                        swap(&s[t], &s[with]);
                    }
                } else {
                    if (s[with] > s[t]) {
                        swap(&s[t], &s[with]);
                    }
                }
            }
            meet(group);
        }
    }
}

static unsigned long check(long group) {
    unsigned long before = 0, after = 0, hash = 0;
    for (unsigned i = 0; i < BLOCK; i++) {
        if (i > 0 && shared[group][i - 1] > shared[group][i]) {
            fail(PROGRAM, "group %ld: number %u is less than the one before", group, i);
        }
        before += scrambled((unsigned)number(group, i));
        after += scrambled((unsigned)shared[group][i]);
        hash = hash * 31 + (unsigned)shared[group][i];
    }
    if (before != after) {
        fail(PROGRAM, "group %ld: other numbers came out than went in", group);
    }
    return hash;
}

RUN_GROUPS
