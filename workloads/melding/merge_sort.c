/* Bottom-up merge sort of PER_THREAD * BLOCK numbers: first each thread merges runs of its own, then half of the threads
 * merge pairs of runs, a quarter, and so on, from one array into another and back. The branch of the merge depends on data. */
#define PROGRAM "merge_sort"

#include "group.h"

enum { PER_THREAD = 8, LENGTH = PER_THREAD * BLOCK };

static int numbers[MAX_GROUPS][2][LENGTH];
DATA int sorted_in[MAX_GROUPS];

static int number(long group, unsigned place) {
    return (int)(scrambled(place * 3 + 101 * (unsigned)group) >> 8);
}

static void prepare(long group) {
    for (unsigned i = 0; i < LENGTH; i++) {
        numbers[group][0][i] = number(group, i);
    }
}

static AS_WRITTEN void merge(const int *from, int *to, unsigned first, unsigned middle, unsigned end) {
    unsigned i = first, j = middle;
    unsigned k = first;
    AS_LOOP for (; i < middle && j < end; k++) {
        if (from[i] <= from[j]) {
            to[k] = from[i];
            i++;
        } else {
            to[k] = from[j];
            j++;
        }
    }
    AS_LOOP for (; i < middle; i++, k++) {
        to[k] = from[i];
    }
    AS_LOOP for (; j < end; j++, k++) {
        to[k] = from[j];
    }
}

static AS_WRITTEN void kernel(long group, unsigned t) {
    int side = 0;
    for (unsigned width = 1; width < LENGTH; width *= 2) {
        AS_LOOP for (unsigned first = t * 2 * width; first < LENGTH; first += BLOCK * 2 * width) {
            merge(numbers[group][side], numbers[group][!side], first, first + width, first + 2 * width);
        }
        side = !side;
        meet(group);
    }
    if (t == 0) {
        sorted_in[group] = side;
    }
}

static unsigned long check(long group) {
    const int *result = numbers[group][sorted_in[group]];
    unsigned long before = 0, after = 0, hash = 0;
    for (unsigned i = 0; i < LENGTH; i++) {
        if (i > 0 && result[i - 1] > result[i]) {
            fail(PROGRAM, "group %ld: number %u is less than the one before", group, i);
        }
        before += scrambled((unsigned)number(group, i));
        after += scrambled((unsigned)result[i]);
        hash = hash * 31 + (unsigned)result[i];
    }
    if (before != after) {
        fail(PROGRAM, "group %ld: other numbers came out than went in", group);
    }
    return hash;
}

RUN_GROUPS
