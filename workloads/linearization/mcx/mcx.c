/* Photons in tissue, by Monte Carlo: a thread follows photons through voxels. A photon goes straight on to where it
 * scatters or to the next voxel, and leaves a part of its weight there. It ends by leaving the cube, by its age, or by
 * lot where its weight is small; at the surface it may be reflected. So a turn of the loop has many ends, and directions
 * are drawn in a loop of its own until a pair of numbers fits.
 *
 * Weights are whole numbers, so that sums do not depend on the order. The check: what was sent and won by lot is what was
 * left in voxels, went out, grew too old, or lost by lot, to the last bit; and in the middle of each group's photons most
 * weight lies where they come in. */
#define PROGRAM "mcx"

#include "group.h"

enum { SIDE = 12, PHOTONS = 3, WEIGHT = 1 << 20, SMALL = WEIGHT / 128, CHANCE = 8 };

struct tally {
    unsigned long sent, won, out, old, lost;
};

DATA unsigned char media[SIDE][SIDE][SIDE];
DATA unsigned deposits[MAX_GROUPS][SIDE][SIDE][SIDE];
DATA struct tally tallies[MAX_GROUPS][BLOCK];

static void prepare(long group) {
    if (group == 0) {
        for (int z = 0; z < SIDE; z++) {
            for (int y = 0; y < SIDE; y++) {
                for (int x = 0; x < SIDE; x++) {
                    int dx = x - 6, dy = y - 7, dz = z - 6;
                    media[z][y][x] = dx * dx + dy * dy + dz * dz < 9 ? 1 : 0;
                }
            }
        }
    }
    memset(deposits[group], 0, sizeof deposits[group]);
    memset(tallies[group], 0, sizeof tallies[group]);
}

/* The next of a row of numbers, from 0 up to but without 1. */
static inline __attribute__((always_inline)) float drawn(unsigned *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return (float)(*seed >> 8) / 16777216.0f;
}

static inline __attribute__((always_inline)) float from_bits(unsigned bits) {
    float number;
    __builtin_memcpy(&number, &bits, sizeof number);
    return number;
}

static inline __attribute__((always_inline)) unsigned bits_of(float number) {
    unsigned bits;
    __builtin_memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* The natural logarithm, to three digits. */
static inline __attribute__((always_inline)) float logarithm(float number) {
    unsigned bits = bits_of(number);
    float m = from_bits((bits & 0x7fffff) | 0x3f800000) - 1.0f;
    float of_m = m * (1.4426f + m * (-0.7190f + m * (0.4380f - 0.1616f * m)));
    return 0.6931472f * ((float)(int)(bits >> 23) - 127.0f + of_m);
}

/* The square root, to six digits. */
static inline __attribute__((always_inline)) float root(float number) {
    float guess = from_bits((bits_of(number) >> 1) + 0x1fbd1df5);
    guess = 0.5f * (guess + number / guess);
    return 0.5f * (guess + number / guess);
}

static AS_WRITTEN void kernel(long group, unsigned thread) {
    struct tally *tally = &tallies[group][thread];
    unsigned seed = scrambled(thread + 1 + 1024 * (unsigned)group) | 1;
    unsigned long won = 0, out = 0, old = 0, lost = 0;
    AS_LOOP for (unsigned photon = 0; photon < PHOTONS; photon++) {
        float x = SIDE / 2 + 0.25f, y = SIDE / 2 + 0.25f, z = 0.001f, along_x = 0, along_y = 0, along_z = 1;
        float to_scatter = -logarithm(drawn(&seed) + 1e-7f), age = 0;
        unsigned weight = WEIGHT;
        for (;;) {
            int i = (int)x, j = (int)y, k = (int)z;
            unsigned medium = media[k][j][i];
            float scattering = medium == 1 ? 3.0f : 1.2f, absorption = medium == 1 ? 0.35f : 0.08f;
            /* The next surface of the voxel. */
            float step = to_scatter / scattering, toward;
            unsigned surface = 0;
            if (along_x > 0 || along_x < 0) {
                toward = ((along_x > 0 ? (float)(i + 1) : (float)i) - x) / along_x;
                if (toward < step) {
                    step = toward;
                    surface = 1;
                }
            }
            if (along_y > 0 || along_y < 0) {
                toward = ((along_y > 0 ? (float)(j + 1) : (float)j) - y) / along_y;
                if (toward < step) {
                    step = toward;
                    surface = 2;
                }
            }
            if (along_z > 0 || along_z < 0) {
                toward = ((along_z > 0 ? (float)(k + 1) : (float)k) - z) / along_z;
                if (toward < step) {
                    step = toward;
                    surface = 3;
                }
            }
            step = step < 0 ? 0 : step;
            float share = step * absorption < 0.9f ? step * absorption : 0.9f;
            unsigned left = (unsigned)((float)weight * share);
            weight -= left;
            __atomic_fetch_add(&deposits[group][k][j][i], left, __ATOMIC_RELAXED);
            x += along_x * step;
            y += along_y * step;
            z += along_z * step;
            age += step;
            if (age > 40.0f) {
                old += weight;
                break;
            }
            if (surface != 0) {
                to_scatter -= step * scattering;
                /* Just behind the surface. */
                float *at = surface == 1 ? &x : surface == 2 ? &y : &z;
                float *along = surface == 1 ? &along_x : surface == 2 ? &along_y : &along_z;
                *at += *along > 0 ? 1e-4f : -1e-4f;
                if (x < 0 || x >= SIDE || y < 0 || y >= SIDE || z < 0 || z >= SIDE) {
                    if ((*along < 0.6f && *along > -0.6f) || drawn(&seed) < 0.05f) {
                        *along = -*along;
                        *at += *along > 0 ? 3e-4f : -3e-4f;
                        continue;
                    }
                    out += weight;
                    break;
                }
                continue;
            }
            if (weight < SMALL) {
                if (drawn(&seed) * CHANCE >= 1.0f || weight == 0) {
                    lost += weight;
                    break;
                }
                won += weight * (CHANCE - 1ul);
                weight *= CHANCE;
            }
            /* A new direction, forward rather than back (Henyey and Greenstein, 0.8). */
            to_scatter = -logarithm(drawn(&seed) + 1e-7f);
            float part = 0.36f / (1.0f - 0.8f + 1.6f * drawn(&seed)), cosine = (1.64f - part * part) / 1.6f;
            cosine = cosine < -1 ? -1 : cosine > 1 ? 1 : cosine;
            float sine = root(1.0f - cosine * cosine + 1e-12f), a, b, square;
            do {
                a = 2.0f * drawn(&seed) - 1.0f;
                b = 2.0f * drawn(&seed) - 1.0f;
                square = a * a + b * b;
            } while (square > 1.0f || square < 1e-4f);
            float scale = sine / root(square);
            a *= scale;
            b *= scale;
            if (along_z > 0.999f || along_z < -0.999f) {
                along_x = a;
                along_y = b;
                along_z = along_z > 0 ? cosine : -cosine;
            } else {
                float level = root(1.0f - along_z * along_z), old_x = along_x, old_y = along_y;
                along_x = (old_x * along_z * a - old_y * b) / level + old_x * cosine;
                along_y = (old_y * along_z * a + old_x * b) / level + old_y * cosine;
                along_z = -a * level + along_z * cosine;
            }
        }
    }
    tally->sent = (unsigned long)PHOTONS * WEIGHT;
    tally->won = won;
    tally->out = out;
    tally->old = old;
    tally->lost = lost;
}

static unsigned long check(long group) {
    unsigned long in = 0, gone = 0, upper = 0, lower = 0, hash = 0;
    for (unsigned thread = 0; thread < BLOCK; thread++) {
        const struct tally *t = &tallies[group][thread];
        in += t->sent + t->won;
        gone += t->out + t->old + t->lost;
        hash = hash * 31 + t->out + 7 * t->old;
    }
    for (int z = 0; z < SIDE; z++) {
        for (int y = 0; y < SIDE; y++) {
            for (int x = 0; x < SIDE; x++) {
                *(z < SIDE / 2 ? &upper : &lower) += deposits[group][z][y][x];
                hash = hash * 31 + deposits[group][z][y][x];
            }
        }
    }
    if (in != gone + upper + lower) {
        fail(PROGRAM, "group %ld: %lu came in and %lu is left", group, in, gone + upper + lower);
    }
    if (upper <= lower || lower == 0) {
        fail(PROGRAM, "group %ld: %lu lies above and %lu below", group, upper, lower);
    }
    return hash;
}

RUN_GROUPS
