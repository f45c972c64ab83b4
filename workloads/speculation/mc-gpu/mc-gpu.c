/* X-rays through a body of voxels, after MC-GPU: a task is a photon that leaves the source (the prolog) and is followed
 * until it is absorbed or leaves (the epilog counts it). Between interactions it flies by Woodcock's tracking: steps as
 * if the densest material were everywhere, and at the end of each a draw whether anything happens there (the innermost
 * loop). Compton and Rayleigh scattering draw an angle until it fits, the photoelectric effect ends the photon. Most
 * photons interact never or once, others ten times, so lanes leave the loop of flights at different times. Predicted:
 * the body of that loop, the middle one of three.
 *
 * Places that look alike and pay less or not at all: a step of the flight, in the innermost loop; either scattering,
 * the draws of either's angle, and absorption.
 *
 * Energies are whole numbers, whose sums do not depend on the order. The check: no energy is lost, and as many
 * photons fly through unharmed as the rates along their ways, voxel by voxel, let expect. */
#define PROGRAM "mc-gpu"
#define TASKS 512

#include "../../include/numbers.h"
#include "../../include/tasks.h"

enum { SIDE = 16, BINS = 8, LEAST_BIN = 1, EV_IN_BIN = 10000 };
enum material { AIR, TISSUE, BONE, MATERIALS };

/* Interactions per voxel's length, by energy; filled by `prepare`. */
static struct {
    double all, compton, rayleigh;
} rates[MATERIALS][BINS];
static double densest[BINS];
static unsigned char voxels[SIDE][SIDE][SIDE];
static unsigned long deposits[SIDE][SIDE][SIDE];
static struct {
    unsigned energy, interactions;
} *photons;

static void prepare(void) {
    static const double density[MATERIALS] = {0.02, 0.4, 1.6}, absorbs[MATERIALS] = {0.5, 0.6, 2.0};
    photons = zeroed(PROGRAM, (size_t)tasks, sizeof *photons);
    for (int bin = 0; bin < BINS; bin++) {
        double energy = (bin + 0.5) / BINS;
        for (int material = 0; material < MATERIALS; material++) {
            double compton = 1 / (1 + energy), rayleigh = 0.1 / (0.2 + energy);
            double photoelectric = 0.02 * absorbs[material] / (energy * energy);
            rates[material][bin].compton = density[material] * compton;
            rates[material][bin].rayleigh = density[material] * rayleigh;
            rates[material][bin].all = density[material] * (compton + rayleigh + photoelectric);
            if (rates[material][bin].all > densest[bin]) {
                densest[bin] = rates[material][bin].all;
            }
        }
    }
    for (int z = 0; z < SIDE; z++) {
        for (int y = 0; y < SIDE; y++) {
            for (int x = 0; x < SIDE; x++) {
                int dx = 2 * x - SIDE + 1, dy = 2 * y - SIDE + 1, far = dx * dx + dy * dy;
                voxels[z][y][x] = far < 12 ? BONE : far < 110 && (z / 3 % 2 == 0 || far > 60) ? TISSUE : AIR;
            }
        }
    }
}

struct photon {
    double x, y, z, along_x, along_y, along_z;
    unsigned energy;
};

/* A photon from the source, which is a point in front of the body. */
static inline __attribute__((always_inline)) struct photon sent(uint64_t *seed) {
    double x = 0.8 * drawn(seed) - 0.4, y = 0.8 * drawn(seed) - 0.4, scale = 1 / sqrt(x * x + y * y + 1);
    struct photon photon = {SIDE / 2 + x * SIDE, 0, SIDE / 2 + y * SIDE, x * scale, scale, y * scale, 0};
    photon.energy = (unsigned)((BINS - 4 + 4 * drawn(seed)) * EV_IN_BIN);
    return photon;
}

/* Turns a photon by an angle, any way around. */
static inline __attribute__((always_inline)) void turned(struct photon *photon, double cosine, double turn) {
    double sine = sqrt(1 - cosine * cosine), a = sine * cosine_of_turn(turn), b = sine * sine_of_turn(turn);
    double x = photon->along_x, y = photon->along_y, z = photon->along_z;
    /* Duff et al.'s basis, which needs no branch except for the sign. */
    double sign = __builtin_copysign(1.0, z), c = -1 / (sign + z), d = x * y * c;
    photon->along_x = cosine * x + a * (1 + sign * x * x * c) + b * d;
    photon->along_y = cosine * y + a * sign * d + b * (sign + y * y * c);
    photon->along_z = cosine * z - a * sign * x - b * y;
}

static AS_WRITTEN void kernel(long first) {
    LOCKSTEP_PREDICT(flight);
    for (long task = first; task < tasks; task += threads) {
        uint64_t seed = seed_of((uint64_t)task);
        struct photon photon = sent(&seed);
        unsigned interactions = 0;
        enum { FLIES, INTERACTS, IS_OUT, IS_GONE } state = FLIES;
        while (state < IS_OUT) {
            LOCKSTEP_RECONVERGE(flight);
            int i = 0, j = 0, k = 0;
            unsigned bin = photon.energy / EV_IN_BIN;
            double most = densest[bin], scale = 1 / most;
            enum material material = AIR;
            state = FLIES;
            do {
                double step = -scale * logarithm(drawn(&seed) + 0x1p-33);
                photon.x += step * photon.along_x;
                photon.y += step * photon.along_y;
                photon.z += step * photon.along_z;
                /* Cut off as numbers without a sign: what is below 0 is far above. */
                i = (int)(photon.x + SIDE) - SIDE;
                j = (int)(photon.y + SIDE) - SIDE;
                k = (int)(photon.z + SIDE) - SIDE;
                if (((unsigned)i | (unsigned)j | (unsigned)k) >= SIDE) {
                    state = IS_OUT;
                } else {
                    material = voxels[k][j][i];
                    state = drawn(&seed) * most < rates[material][bin].all ? INTERACTS : FLIES;
                }
                END_OF_TURN(state);
            } while (state == FLIES);
            if (state == INTERACTS) {
                unsigned left = photon.energy;
                double which = drawn(&seed) * rates[material][bin].all;
                interactions++;
                if (which < rates[material][bin].compton) {
                    /* Klein and Nishina's angle. */
                    double ratio, cosine, likely, energy = photon.energy / 511000.0;
                    do {
                        cosine = 2 * drawn(&seed) - 1;
                        ratio = 1 / (1 + energy * (1 - cosine));
                        likely = 0.5 * ratio * ratio * (ratio + 1 / ratio - 1 + cosine * cosine);
                    } while (drawn(&seed) >= likely);
                    left = (unsigned)(photon.energy * ratio);
                    turned(&photon, cosine, drawn(&seed));
                } else if (which < rates[material][bin].compton + rates[material][bin].rayleigh) {
                    double cosine;
                    do {
                        cosine = 2 * drawn(&seed) - 1;
                    } while (2 * drawn(&seed) >= 1 + cosine * cosine);
                    turned(&photon, cosine, drawn(&seed));
                } else {
                    left = 0;
                }
                if (left < LEAST_BIN * EV_IN_BIN) {
                    left = 0;
                    state = IS_GONE;
                }
                __atomic_fetch_add(&deposits[k][j][i], photon.energy - left, __ATOMIC_RELAXED);
                photon.energy = left;
            }
            END_OF_TURN(state);
        }
        photons[task].energy = photon.energy;
        photons[task].interactions = interactions;
    }
}

/* How likely a photon is to fly through: along its way in small steps. */
static double passes(struct photon photon) {
    double step = 1.0 / 32, depth = 0;
    for (;;) {
        photon.x += step * photon.along_x;
        photon.y += step * photon.along_y;
        photon.z += step * photon.along_z;
        if (photon.x < 0 || photon.x >= SIDE || photon.y < 0 || photon.y >= SIDE || photon.z < 0 || photon.z >= SIDE) {
            return exp(-depth);
        }
        int material = voxels[(int)photon.z][(int)photon.y][(int)photon.x];
        depth += step * rates[material][photon.energy / EV_IN_BIN].all;
    }
}

static void check(void) {
    unsigned long in = 0, out = 0, left = 0, unharmed = 0, interactions = 0;
    double expected = 0, variance = 0;
    for (long task = 0; task < tasks; task++) {
        uint64_t seed = seed_of((uint64_t)task);
        struct photon photon = sent(&seed);
        double through = passes(photon);
        expected += through;
        variance += through * (1 - through);
        in += photon.energy;
        out += photons[task].energy;
        interactions += photons[task].interactions;
        unharmed += photons[task].interactions == 0;
    }
    for (int voxel = 0; voxel < SIDE * SIDE * SIDE; voxel++) {
        left += deposits[voxel / SIDE / SIDE][voxel / SIDE % SIDE][voxel % SIDE];
    }
    if (in != out + left) {
        fail(PROGRAM, "%lu eV came in, %lu left and %lu stayed", in, out, left);
    }
    if (fabs((double)unharmed - expected) > 5 * sqrt(variance) + 1) {
        fail(PROGRAM, "%lu photons came through unharmed, where about %.1f belong", unharmed, expected);
    }
    printf("%ld photons, %lu unharmed; %lu interactions left %lu of %lu eV\n", tasks, unharmed, interactions, left, in);
}

RUN_TASKS
