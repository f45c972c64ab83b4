/* Partition and concurrent merge, after Batcher's odd-even merge: each thread holds a sorted bucket in the group's buffer.
 * In each phase two neighbours merge their buckets, one taking the lower half from the front, the other the upper half
 * from the back; who is whose neighbour alternates. Loops with branches on data stand on both sides of a branch. */
#define PROGRAM "pcm"

#include "group.h"

enum { BUCKET = 4 };

static int shared[MAX_GROUPS][BLOCK][BUCKET];

static int number(long group, unsigned thread, unsigned place) {
    return (int)(scrambled(thread * 64 + place + 613 * (unsigned)group) >> 9);
}

static void prepare(long group) {
    for (unsigned t = 0; t < BLOCK; t++) {
        for (unsigned i = 0; i < BUCKET; i++) {
            int taken = number(group, t, i);
            unsigned place = i;
            for (; place > 0 && shared[group][t][place - 1] > taken; place--) {
                shared[group][t][place] = shared[group][t][place - 1];
            }
            shared[group][t][place] = taken;
        }
    }
}

static AS_WRITTEN void kernel(long group, unsigned t) {
    int(*buckets)[BUCKET] = shared[group];
    int merged[BUCKET];
    AS_LOOP for (unsigned phase = 0; phase < BLOCK; phase++) {
        unsigned is_lower = ((t ^ phase) & 1) == 0;
        unsigned with = is_lower ? t + 1 : t - 1;
        int has_neighbour = with < BLOCK;
        if (has_neighbour) {
            const int *mine = buckets[t], *theirs = buckets[with];
            if (is_lower) {
                unsigned i = 0, j = 0;
                for (unsigned k = 0; k < BUCKET; k++) {
                    if (mine[i] <= theirs[j]) {
                        merged[k] = mine[i];
                        i++;
                    } else {
                        merged[k] = theirs[j];
                        j++;
                    }
                }
            } else {
                unsigned i = BUCKET - 1, j = BUCKET - 1;
                for (unsigned k = BUCKET; k > 0; k--) {
                    if (mine[i] > theirs[j]) {
                        merged[k - 1] = mine[i];
                        i--;
                    } else {
                        merged[k - 1] = theirs[j];
                        j--;
                    }
                }
            }
        }
        meet(group);
        if (has_neighbour) {
            for (unsigned k = 0; k < BUCKET; k++) {
                buckets[t][k] = merged[k];
            }
        }
        meet(group);
    }
}

static unsigned long check(long group) {
    const int *all = shared[group][0];
    unsigned long before = 0, after = 0, hash = 0;
    for (unsigned i = 0; i < BLOCK * BUCKET; i++) {
        if (i > 0 && all[i - 1] > all[i]) {
            fail(PROGRAM, "group %ld: number %u is less than the one before", group, i);
        }
        before += scrambled((unsigned)number(group, i / BUCKET, i % BUCKET));
        after += scrambled((unsigned)all[i]);
        hash = hash * 31 + (unsigned)all[i];
    }
    if (before != after) {
        fail(PROGRAM, "group %ld: other numbers came out than went in", group);
    }
    return hash;
}

RUN_GROUPS
