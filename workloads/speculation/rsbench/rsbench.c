/* Cross sections of materials from the poles of their nuclides, after RSBench: a lookup draws a material and an energy
 * (the prolog), sums what each nuclide of the material contributes (the inner loop, 4 to 321 turns: resonances of a
 * window of energies, and a polynomial for those far away) and keeps the sums (the epilog). Few materials have many
 * nuclides, so lanes leave the inner loop at different times. Predicted: the body of the inner loop.
 *
 * Places that look alike and do not pay: the search for the material drawn; the poles of a window, 2 to 4; resonances
 * that lie near; the last window, which is cut off; and materials that fission.
 *
 * The check sums again, backwards and with the library's complex numbers. */
#include <complex.h>

#define PROGRAM "rsbench"
#define TASKS 512

#include "../../include/tasks.h"

enum { MATERIALS = 12, NUCLIDES = 355, MOST = 321, WINDOWS = 16, MOST_POLES = 4, SUMS = 3 };

/* Nuclides of the materials, and how many of 1000 lookups are in each: fuel, cladding, water, steel, … */
static const int counts[MATERIALS] = {321, 5, 4, 4, 27, 21, 21, 21, 21, 21, 9, 9};
static const int shares[MATERIALS] = {140, 52, 275, 134, 154, 64, 66, 55, 8, 14, 25, 13};

struct pole {
    double at, width, total, captured, fissioned;
};

struct window {
    int poles;
    double offset, slope, bend;
    struct pole pole[MOST_POLES];
};

static struct window windows[NUCLIDES][WINDOWS];
static int nuclide_of[MATERIALS][MOST];
static double (*sums)[SUMS];

static void prepare(void) {
    sums = zeroed(PROGRAM, (size_t)tasks, sizeof *sums);
    for (int nuclide = 0; nuclide < NUCLIDES; nuclide++) {
        uint64_t seed = seed_of((uint64_t)nuclide);
        for (int i = 0; i < WINDOWS; i++) {
            struct window *window = &windows[nuclide][i];
            unsigned many = drawn_bits(&seed) % 8;
            window->poles = many == 0 ? 2 : many == 1 ? 4 : 3;
            window->offset = 1 + drawn(&seed);
            window->slope = drawn(&seed);
            window->bend = drawn(&seed);
            for (int pole = 0; pole < MOST_POLES; pole++) {
                double at = (i + drawn(&seed)) / WINDOWS, width = 0.01 + 0.05 * drawn(&seed);
                window->pole[pole] = (struct pole){at, width, drawn(&seed), drawn(&seed), drawn(&seed)};
            }
        }
    }
    for (int material = 0; material < MATERIALS; material++) {
        for (int i = 0; i < counts[material]; i++) {
            nuclide_of[material][i] = (i * 11 + material * 29) % NUCLIDES;
        }
    }
}

static inline int drawn_material(uint64_t *seed) {
    int dice = (int)(drawn_bits(seed) % 1000), material = 0;
    while (material < MATERIALS - 1 && dice >= shares[material]) {
        dice -= shares[material];
        material++;
    }
    return material;
}

static AS_WRITTEN void kernel(long first) {
    LOCKSTEP_PREDICT(nuclide);
    for (long lookup = first; lookup < tasks; lookup += threads) {
        uint64_t seed = seed_of((uint64_t)lookup);
        double energy = drawn(&seed), root = sqrt(energy);
        int material = drawn_material(&seed);
        double total = 0, captured = 0, fissioned = 0;
        for (int i = 0; i < counts[material]; i++) {
            LOCKSTEP_RECONVERGE(nuclide);
            int nuclide = nuclide_of[material][i];
            int number = (int)(energy * WINDOWS);
            if (number >= WINDOWS - 1) {
                number = WINDOWS - 1;
                total += 0.001 * energy;
            }
            const struct window *window = &windows[nuclide][number];
            /* What is far away. */
            double far = window->offset / energy + window->slope / root + window->bend;
            total += far;
            captured += 0.5 * far;
            for (int p = 0; p < window->poles; p++) {
                /* (a + bi) / (distance - width i), its real part. */
                const struct pole *pole = &window->pole[p];
                double distance = pole->at - energy;
                double square = distance * distance + pole->width * pole->width, scale = 1 / square;
                if (square < 1e-4) {
                    scale *= 0.5;
                }
                double real = distance * scale, imaginary = pole->width * scale;
                total += pole->total * real - pole->captured * imaginary;
                captured += pole->captured * real;
                fissioned += pole->fissioned * imaginary;
            }
        }
        if (material == 0) {
            fissioned *= 1 + 0.02 * root;
        }
        sums[lookup][0] = total;
        sums[lookup][1] = captured;
        sums[lookup][2] = fissioned;
    }
}

static void check(void) {
    double all = 0;
    for (long lookup = 0; lookup < tasks; lookup++) {
        uint64_t seed = seed_of((uint64_t)lookup);
        double energy = drawn(&seed), again[SUMS] = {0}, size = 0;
        int material = drawn_material(&seed);
        for (int i = counts[material] - 1; i >= 0; i--) {
            int number = (int)(energy * WINDOWS);
            const struct window *window = &windows[nuclide_of[material][i]][number];
            for (int p = window->poles - 1; p >= 0; p--) {
                const struct pole *pole = &window->pole[p];
                double complex to = pole->at - energy - pole->width * I, one = 1 / to;
                one *= cabs(to) < 1e-2 ? 0.5 : 1;
                again[0] += creal((pole->total + pole->captured * I) * one);
                again[1] += pole->captured * creal(one);
                again[2] += pole->fissioned * cimag(one);
                size += cabs(one);
            }
            double far = window->offset / energy + window->slope / sqrt(energy) + window->bend;
            again[0] += far + (number == WINDOWS - 1 ? 0.001 * energy : 0);
            again[1] += far / 2;
            size += far;
        }
        again[2] *= material == 0 ? 1 + 0.02 * sqrt(energy) : 1;
        for (int i = 0; i < SUMS; i++) {
            if (!(fabs(sums[lookup][i] - again[i]) <= 1e-10 * size)) {
                fail(PROGRAM, "sum %d of lookup %ld is %.17g, not %.17g", i, lookup, sums[lookup][i], again[i]);
            }
            all += sums[lookup][i] / size;
        }
    }
    printf("%ld lookups, cross sections of %.6f\n", tasks, all);
}

RUN_TASKS
