/* The kernel of a particle filter that draws new particles: each looks for the first place of the cumulative
 * distribution that reaches its own number, with a particle inside of the picture, and takes that particle's position.
 * Threads leave the search after as many turns as they need, by two ways: found, or the numbers' end, where the last
 * particle is taken and the miss is counted. Where both meet the search is over for all.
 *
 * The check looks for the same places by halving. */
#define PROGRAM "particle_filter"

#include "group.h"

enum { PARTICLES = 4 * BLOCK, PICTURE = 900 };

struct particles {
    float sums[PARTICLES], draws[PARTICLES], x[PARTICLES], y[PARTICLES], new_x[PARTICLES], new_y[PARTICLES];
    unsigned missed[BLOCK];
};

DATA struct particles all[MAX_GROUPS];

static void prepare(long group) {
    struct particles *p = &all[group];
    float sum = 0;
    memset(p->missed, 0, sizeof p->missed);
    for (unsigned i = 0; i < PARTICLES; i++) {
        sum += 1.0f + (float)(scrambled(i + 977 * (unsigned)group) % 64);
        p->sums[i] = sum;
        p->x[i] = (float)(scrambled(3 * i + 1) % 1000);
        p->y[i] = (float)(scrambled(3 * i + 2) % 1000);
    }
    for (unsigned i = 0; i < PARTICLES; i++) {
        p->sums[i] /= sum;
        float first = (float)(scrambled(61 + (unsigned)group) % 1000) / 1000.0f;
        /* Numbers in one order, as systematic resampling has them; the last may lie behind all sums. */
        p->draws[i] = ((float)i + first) / ((float)PARTICLES - 0.75f);
    }
}

static AS_WRITTEN void kernel(long group, unsigned thread) {
    struct particles *p = &all[group];
    AS_LOOP for (unsigned i = thread; i < PARTICLES; i += BLOCK) {
        float draw = p->draws[i];
        unsigned place = 0;
        AS_LOOP for (; place < PARTICLES; place++) {
            if (p->sums[place] >= draw && p->x[place] < PICTURE) {
                goto found;
            }
        }
        place = PARTICLES - 1;
        p->missed[thread]++;
    found:
        p->new_x[i] = p->x[place];
        p->new_y[i] = p->y[place];
    }
}

static unsigned long check(long group) {
    const struct particles *p = &all[group];
    unsigned long hash = 0;
    unsigned missed = 0;
    for (unsigned thread = 0; thread < BLOCK; thread++) {
        missed += p->missed[thread];
    }
    for (unsigned i = 0; i < PARTICLES; i++) {
        unsigned least = 0, most = PARTICLES - 1;
        while (least < most) {
            unsigned middle = (least + most) / 2;
            if (p->sums[middle] >= p->draws[i]) {
                most = middle;
            } else {
                least = middle + 1;
            }
        }
        while (least < PARTICLES - 1 && p->x[least] >= PICTURE) {
            least++;
        }
        missed -= p->sums[least] < p->draws[i] || p->x[least] >= PICTURE;
        if (p->new_x[i] != p->x[least] || p->new_y[i] != p->y[least]) {
            fail(PROGRAM, "group %ld: particle %u is not a copy of particle %u", group, i, least);
        }
        hash = hash * 31 + least;
    }
    if (missed != 0) {
        fail(PROGRAM, "group %ld: the number of misses is wrong by %d", group, (int)missed);
    }
    return hash;
}

RUN_GROUPS
