/* Queens that do not threaten each other: a thread gets the places of the first two rows and counts the ways to fill the
 * others, row by row, with the columns and diagonals under threat as sets of bits and a stack of what is left to try.
 * Threads part in how deep they are. A row without a free place, the last row, and the end of the search each leave by a
 * way of its own, two of them to the same block.
 *
 * The check knows how many ways there are in all. */
#define PROGRAM "nqueens"

#include "group.h"

enum { QUEENS = 8, ALL = (1 << QUEENS) - 1, LIMIT = 100000 };

struct board {
    unsigned ways[BLOCK], tried[BLOCK];
};

DATA struct board boards[MAX_GROUPS];
/* Of each thread: what is left to try in a row, and what is under threat there. */
DATA unsigned left_in[MAX_GROUPS][QUEENS][BLOCK], columns_in[MAX_GROUPS][QUEENS][BLOCK];
DATA unsigned rising_in[MAX_GROUPS][QUEENS][BLOCK], falling_in[MAX_GROUPS][QUEENS][BLOCK];

static void prepare(long group) {
    memset(&boards[group], 0, sizeof boards[group]);
}

static AS_WRITTEN void kernel(long group, unsigned thread) {
    unsigned(*left)[BLOCK] = left_in[group], (*column)[BLOCK] = columns_in[group];
    unsigned(*rising)[BLOCK] = rising_in[group], (*falling)[BLOCK] = falling_in[group];
    unsigned ways = 0, tried = 0;
    AS_LOOP for (unsigned start = thread; start < QUEENS * QUEENS; start += BLOCK) {
        unsigned first = 1u << start / QUEENS, second = 1u << start % QUEENS;
        if ((second & (first | first << 1 | first >> 1)) != 0) {
            continue;
        }
        int row = 2;
        column[row][thread] = first | second;
        rising[row][thread] = (first << 1 | second) << 1;
        falling[row][thread] = (first >> 1 | second) >> 1;
        left[row][thread] = ALL & ~(column[row][thread] | rising[row][thread] | falling[row][thread]);
        for (;;) {
            unsigned free = left[row][thread];
            if (free == 0) {
                if (row == 2) {
                    break;
                }
                row--;
                continue;
            }
            unsigned queen = free & -free;
            left[row][thread] = free & ~queen;
            if (tried++ == LIMIT) {
                goto give_up;
            }
            if (row == QUEENS - 1) {
                ways++;
                continue;
            }
            unsigned c = column[row][thread] | queen;
            unsigned r = (rising[row][thread] | queen) << 1, f = (falling[row][thread] | queen) >> 1;
            unsigned next = ALL & ~(c | r | f);
            if (next == 0) {
                continue;
            }
            row++;
            column[row][thread] = c;
            rising[row][thread] = r;
            falling[row][thread] = f;
            left[row][thread] = next;
        }
    }
give_up:
    boards[group].ways[thread] = ways;
    boards[group].tried[thread] = tried;
}

static unsigned long check(long group) {
    static const unsigned known[] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724};
    unsigned long ways = 0, tried = 0;
    for (unsigned thread = 0; thread < BLOCK; thread++) {
        ways += boards[group].ways[thread];
        tried += boards[group].tried[thread];
    }
    if (ways != known[QUEENS]) {
        fail(PROGRAM, "group %ld: %lu ways where there are %u", group, ways, known[QUEENS]);
    }
    return ways * 1000000 + tried;
}

RUN_GROUPS
