/* Heat on a chip: a group computes STEPS time steps of a tile without looking at other tiles, so that the part of it that
 * is right shrinks by one cell a step. A thread has a column of the tile. A cell gets a new temperature where it is far
 * enough from the tile's edge, on the chip, and no part of the heat sink; else it keeps its own, and that is counted: a row
 * of conditions, each of which leads to the same else.
 *
 * The check steps through the whole chip, cell by cell. */
#define PROGRAM "hotspot"

#include "group.h"

enum { ROWS = 12, STEPS = 3, WIDTH = 2 * BLOCK, HEIGHT = 2 * ROWS };

DATA float chip[HEIGHT][WIDTH], power[HEIGHT][WIDTH];
DATA unsigned char sink[HEIGHT][WIDTH];
DATA float tiles[MAX_GROUPS][2][ROWS][BLOCK], heated[MAX_GROUPS][ROWS][BLOCK];
DATA unsigned char kept[MAX_GROUPS][ROWS][BLOCK];

/* Where a group's tile begins: some begin before the chip does, or end behind it. */
static inline int left_of(long group) {
    return (int)(group % 4) * (BLOCK / 2) - STEPS;
}
static inline int top_of(long group) {
    return (int)(group / 4 % 4) * (ROWS / 2) - STEPS;
}

static inline float heated_by(float own, float north, float south, float west, float east, float watts) {
    return own + 0.125f * (watts + (north + south - 2.0f * own) * 0.5f + (west + east - 2.0f * own) * 0.5f +
                           (80.0f - own) * 0.0625f);
}

static void prepare(long group) {
    memset(kept[group], 0, sizeof kept[group]);
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) {
            unsigned number = scrambled((unsigned)(y * WIDTH + x));
            chip[y][x] = 60.0f + (float)(number % 512) / 16.0f;
            power[y][x] = (float)(number >> 9 & 63) / 8.0f;
            sink[y][x] = (number >> 20) % 11 == 0;
        }
    }
}

static AS_WRITTEN void kernel(long group, unsigned thread) {
    int tx = (int)thread, x = left_of(group) + tx, top = top_of(group);
    float(*now)[BLOCK] = tiles[group][0], (*next)[BLOCK] = tiles[group][1];
    AS_LOOP for (int ty = 0; ty < ROWS; ty++) {
        int y = top + ty;
        if (x >= 0 && x < WIDTH && y >= 0 && y < HEIGHT) {
            now[ty][tx] = chip[y][x];
        }
    }
    meet(group);
    AS_LOOP for (int step = 0; step < STEPS; step++) {
        AS_LOOP for (int ty = 0; ty < ROWS; ty++) {
            int y = top + ty;
            float own = now[ty][tx];
            if (tx > step && tx < BLOCK - 1 - step && ty > step && ty < ROWS - 1 - step && x >= 0 && x < WIDTH &&
                y >= 0 && y < HEIGHT && !sink[y][x]) {
                float north = y > 0 ? now[ty - 1][tx] : own, south = y < HEIGHT - 1 ? now[ty + 1][tx] : own;
                float west = x > 0 ? now[ty][tx - 1] : own, east = x < WIDTH - 1 ? now[ty][tx + 1] : own;
                next[ty][tx] = heated_by(own, north, south, west, east, power[y][x]);
            } else {
                next[ty][tx] = own;
                kept[group][ty][tx]++;
            }
        }
        meet(group);
        float(*other)[BLOCK] = now;
        now = next;
        next = other;
    }
    AS_LOOP for (int ty = 0; ty < ROWS; ty++) {
        heated[group][ty][tx] = now[ty][tx];
    }
}

static unsigned long check(long group) {
    static float before[HEIGHT][WIDTH], after[HEIGHT][WIDTH];
    memcpy(before, chip, sizeof before);
    for (int step = 0; step < STEPS; step++) {
        for (int y = 0; y < HEIGHT; y++) {
            for (int x = 0; x < WIDTH; x++) {
                int up = y == 0 ? y : y - 1, down = y + 1 == HEIGHT ? y : y + 1;
                int west = x == 0 ? x : x - 1, east = x + 1 == WIDTH ? x : x + 1;
                float changed = heated_by(before[y][x], before[up][x], before[down][x], before[y][west],
                                          before[y][east], power[y][x]);
                after[y][x] = sink[y][x] ? before[y][x] : changed;
            }
        }
        memcpy(before, after, sizeof before);
    }
    unsigned long hash = 0;
    for (int ty = STEPS; ty < ROWS - STEPS; ty++) {
        for (int tx = STEPS; tx < BLOCK - STEPS; tx++) {
            int x = left_of(group) + tx, y = top_of(group) + ty;
            if (x < 0 || x >= WIDTH || y < 0 || y >= HEIGHT) {
                continue;
            }
            float off = heated[group][ty][tx] - before[y][x];
            if (off > 1e-3f || off < -1e-3f) {
                fail(PROGRAM, "group %ld: %g where cell %d, %d has %g", group, (double)heated[group][ty][tx], x, y,
                     (double)before[y][x]);
            }
            if (kept[group][ty][tx] != (sink[y][x] ? STEPS : 0)) {
                fail(PROGRAM, "group %ld: cell %d, %d kept its temperature %d times", group, x, y, kept[group][ty][tx]);
            }
            hash = hash * 31 + (unsigned long)(long)(heated[group][ty][tx] * 64.0f);
        }
    }
    return hash;
}

RUN_GROUPS
