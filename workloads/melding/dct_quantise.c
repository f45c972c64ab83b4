/* Quantisation in place of a plane of 8 by 8 coefficients of a discrete cosine transform: negative values are turned
 * round, quantised, and turned back. The plane is in memory, not in the group's buffer. */
#define PROGRAM "dct_quantise"

#include "group.h"

enum { TURNS = 24 };

static short plane[MAX_GROUPS][TURNS][BLOCK];

static const short steps[64] = {16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57,
                                69, 56, 14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64,
                                81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};

static short coefficient(long group, unsigned turn, unsigned t) {
    return (short)(scrambled((unsigned)group * 7919 + turn * BLOCK + t) % 4001) - 2000;
}

static void prepare(long group) {
    for (unsigned i = 0; i < TURNS * BLOCK; i++) {
        plane[group][i / BLOCK][i % BLOCK] = coefficient(group, i / BLOCK, i % BLOCK);
    }
}

static AS_WRITTEN void kernel(long group, unsigned t) {
    AS_LOOP for (unsigned turn = 0; turn < TURNS; turn++) {
        short value = plane[group][turn][t];
        short step = steps[(t + turn * 8) & 63];
        if (value < 0) {
            value = (short)-value;
            value = (short)(value + (step >> 1));
            value = (short)(value / step);
            value = (short)-value;
        } else {
            value = (short)(value + (step >> 1));
            value = (short)(value / step);
        }
        plane[group][turn][t] = (short)(value * step);
    }
}

static unsigned long check(long group) {
    unsigned long sum = 0;
    for (unsigned i = 0; i < TURNS * BLOCK; i++) {
        unsigned turn = i / BLOCK, t = i % BLOCK;
        int value = coefficient(group, turn, t), step = steps[(t + turn * 8) & 63];
        int size = abs(value) + (step >> 1);
        int right = (value < 0 ? -1 : 1) * (size - size % step);
        if (plane[group][turn][t] != (short)right) {
            fail(PROGRAM, "group %ld: coefficient %u became %d, not %d", group, i, plane[group][turn][t], right);
        }
        sum = sum * 31 + (unsigned short)right;
    }
    return sum;
}

RUN_GROUPS
