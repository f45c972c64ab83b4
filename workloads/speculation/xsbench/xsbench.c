/* Cross sections of materials from tables, after XSBench: a lookup draws a material and an energy, looks for the energy
 * in the grid of all nuclides together (binary search: the prolog), and interpolates in the table of each nuclide of
 * the material (the inner loop, 4 to 321 turns); then it writes down what it found in decimal digits and hashes them,
 * as XSBench's verification does (the epilog). Prolog and epilog are dear, so a lane had better not be given new work
 * alone. Predicted: the body of the inner loop, where 8 lanes are enough.
 *
 * Places that look alike and do not pay: the halves of the binary search, the search for the material drawn, nuclides
 * of which the energy lies just below a point, and the digits that are rounded up.
 *
 * The check looks for each nuclide's energy in its own grid, one by one, and adds up backwards. */
#define PROGRAM "xsbench"
#define TASKS 512

#include "../../include/tasks.h"

enum { MATERIALS = 12, NUCLIDES = 64, POINTS = 256, UNION = NUCLIDES * POINTS, MOST = 321, CHANNELS = 5, DIGITS = 20 };

/* Nuclides of the materials, and how many of 1000 lookups are in each. */
static const int counts[MATERIALS] = {321, 5, 4, 4, 27, 21, 21, 21, 21, 21, 9, 9};
static const int shares[MATERIALS] = {140, 52, 275, 134, 154, 64, 66, 55, 8, 14, 25, 13};

struct point {
    double energy, section[CHANNELS];
};

static struct point tables[NUCLIDES][POINTS];
/* The energies of all tables in order, and for each which point of each table is the last that is not above. */
static double energies[UNION];
static short below[UNION][NUCLIDES];
static struct {
    short nuclide;
    float density;
} parts[MATERIALS][MOST];
static struct {
    double section[CHANNELS];
    uint64_t hash;
} *found;

static int by_energy(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void prepare(void) {
    found = zeroed(PROGRAM, (size_t)tasks, sizeof *found);
    for (int nuclide = 0; nuclide < NUCLIDES; nuclide++) {
        uint64_t seed = seed_of((uint64_t)nuclide);
        for (int i = 0; i < POINTS; i++) {
            struct point *point = &tables[nuclide][i];
            /* From 0 to 1: a table's own steps. */
            point->energy = i == 0 ? 0 : i == POINTS - 1 ? 1 : (i + 0.9 * drawn(&seed)) / POINTS;
            energies[nuclide * POINTS + i] = point->energy;
            for (int channel = 0; channel < CHANNELS; channel++) {
                point->section[channel] = 1 + drawn(&seed);
            }
        }
    }
    qsort(energies, UNION, sizeof energies[0], by_energy);
    for (int i = 0; i < UNION; i++) {
        for (int nuclide = 0; nuclide < NUCLIDES; nuclide++) {
            int at = i == 0 ? 0 : below[i - 1][nuclide];
            while (at + 2 < POINTS && tables[nuclide][at + 1].energy <= energies[i]) {
                at++;
            }
            below[i][nuclide] = (short)at;
        }
    }
    for (int material = 0; material < MATERIALS; material++) {
        uint64_t seed = seed_of(1000 + (uint64_t)material);
        for (int i = 0; i < counts[material]; i++) {
            parts[material][i].nuclide = (short)((i * 11 + material * 5) % NUCLIDES);
            parts[material][i].density = (float)(0.5 + drawn(&seed));
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

/* A number written in decimal digits, the last one rounded, and these mixed into a hash. */
static inline uint64_t mixed(uint64_t hash, double number) {
    uint64_t digits = (uint64_t)(number * 1e5);
    if (number * 1e5 - (double)digits >= 0.5) {
        digits++;
    }
    char line[DIGITS + 1];
    for (int i = 0; i < DIGITS; i++) {
        line[DIGITS - 1 - i] = (char)('0' + digits % 10);
        digits /= 10;
    }
    line[DIGITS] = 0;
    for (const char *at = line; *at != 0; at++) {
        hash = hash * 33 + (unsigned char)*at;
        hash ^= hash >> 29;
    }
    return hash;
}

static AS_WRITTEN void kernel(long first) {
    LOCKSTEP_PREDICT_SOFT(nuclide, 8);
    for (long lookup = first; lookup < tasks; lookup += threads) {
        uint64_t seed = seed_of((uint64_t)lookup);
        double energy = drawn(&seed);
        int material = drawn_material(&seed);
        /* The last point of all that is not above. */
        long low = 0, size = UNION;
        while (size > 1) {
            long half = size / 2;
            if (energies[low + half] <= energy) {
                low += half;
                size -= half;
            } else {
                size = half;
            }
        }
        double sums[CHANNELS] = {0};
        for (int i = 0; i < counts[material]; i++) {
            LOCKSTEP_RECONVERGE(nuclide);
            int nuclide = parts[material][i].nuclide;
            const struct point *point = &tables[nuclide][below[low][nuclide]];
            double share = (energy - point[0].energy) / (point[1].energy - point[0].energy);
            double density = parts[material][i].density;
            if (share > 0.98) {
                share = 1;
            }
            for (int channel = 0; channel < CHANNELS; channel++) {
                double lower = point[0].section[channel], upper = point[1].section[channel];
                sums[channel] += density * (lower + share * (upper - lower));
            }
        }
        uint64_t hash = mixed(mixed(5381, material), energy);
        for (int channel = 0; channel < CHANNELS; channel++) {
            found[lookup].section[channel] = sums[channel];
            hash = mixed(hash, sums[channel] / counts[material]);
        }
        found[lookup].hash = hash;
    }
}

static void check(void) {
    uint64_t all = 0;
    for (long lookup = 0; lookup < tasks; lookup++) {
        uint64_t seed = seed_of((uint64_t)lookup);
        double energy = drawn(&seed), sums[CHANNELS] = {0};
        int material = drawn_material(&seed);
        for (int i = counts[material] - 1; i >= 0; i--) {
            const struct point *table = tables[parts[material][i].nuclide];
            int at = 0;
            while (at + 2 < POINTS && table[at + 1].energy <= energy) {
                at++;
            }
            double share = (energy - table[at].energy) / (table[at + 1].energy - table[at].energy);
            share = share > 0.98 ? 1 : share;
            for (int channel = 0; channel < CHANNELS; channel++) {
                double section = (1 - share) * table[at].section[channel] + share * table[at + 1].section[channel];
                sums[channel] += parts[material][i].density * section;
            }
        }
        uint64_t hash = mixed(mixed(5381, material), energy);
        for (int channel = 0; channel < CHANNELS; channel++) {
            double got = found[lookup].section[channel];
            if (!(fabs(got - sums[channel]) <= 1e-10 * sums[channel])) {
                fail(PROGRAM, "channel %d of lookup %ld has %.17g, not %.17g", channel, lookup, got, sums[channel]);
            }
            hash = mixed(hash, got / counts[material]);
        }
        if (hash != found[lookup].hash) {
            fail(PROGRAM, "lookup %ld has the hash %lx, not %lx", lookup, (unsigned long)found[lookup].hash,
                 (unsigned long)hash);
        }
        all = all * 31 + hash;
    }
    printf("%ld lookups, hash %lx\n", tasks, (unsigned long)all);
}

RUN_TASKS
