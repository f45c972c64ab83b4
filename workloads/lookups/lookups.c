/* Cross sections of materials, after RSBench: each lookup draws a material and an energy (the prolog), sums a
 * contribution of each nuclide of the material (the inner loop, 4 to 321 turns) and adds the sum up (the epilog).
 * Lookups are dealt out to threads in turn, many to each: so threads leave the inner loop at different times, and those
 * that are done early wait for the others at its end, unless lanes are collected inside of it. */
#include "../include/args.h"
#include "../include/crew.h"

#include <math.h>

#define PROGRAM "lookups"

static const char usage[] = "lookups [-p THREADS] [-n LOOKUPS]\n"
                            "  -p THREADS  threads, 1 to 1024 (default 4)\n"
                            "  -n LOOKUPS  lookups of all threads together, 1 to 10000000 (default 512)\n";

enum { MATERIALS = 12, POLES = 64 };

/* Nuclides of the materials, as in the paper's figure 3: most materials have few. */
static const int nuclides[MATERIALS] = {321, 5, 4, 4, 27, 21, 21, 21, 21, 21, 9, 9};

static long threads = 4, lookups = 512;
static double pole[POLES], *sums;

static uint64_t draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* What a nuclide contributes at an energy: the nearest pole, broadened. */
static double contribution(int nuclide, double energy) {
    double distance = energy - pole[nuclide % POLES];
    return 1.0 / (distance * distance + 0.01 * (nuclide + 1));
}

AS_WRITTEN static void look_up(long first) {
    for (long lookup = first; lookup < lookups; lookup += threads) {
        uint64_t state = (uint64_t)lookup * 2654435761u + 1;
        int material = (int)(draw(&state) % MATERIALS);
        double energy = (double)(draw(&state) % 1000) / 1000.0, sum = 0;
        for (int nuclide = 0; nuclide < nuclides[material]; nuclide++) {
            sum += contribution(nuclide, energy);
        }
        sums[lookup] = sum;
    }
}

static void *worker(void *argument) {
    look_up((long)(intptr_t)argument);
    return NULL;
}

int main(int count, char **arguments) {
    int option;
    while ((option = getopt(count, arguments, "hp:n:")) != -1) {
        switch (option) {
        case 'p':
            threads = number_argument(usage, option, optarg, 1, MAX_THREADS);
            break;
        case 'n':
            lookups = number_argument(usage, option, optarg, 1, 10000000);
            break;
        case 'h':
            printf("usage: %s", usage);
            return 0;
        default:
            usage_error(usage);
        }
    }
    if (optind < count) {
        usage_error(usage);
    }
    for (int i = 0; i < POLES; i++) {
        pole[i] = (double)(i * 37 % POLES) / POLES;
    }
    sums = zeroed(PROGRAM, (size_t)lookups, sizeof *sums);
    pthread_t *crew = zeroed(PROGRAM, (size_t)threads, sizeof *crew);
    start_threads(PROGRAM, crew, 0, threads, worker);
    join_threads(PROGRAM, crew, 0, threads);

    /* Summed again backwards, by nuclide: the same except for rounding. */
    double total = 0;
    for (long lookup = 0; lookup < lookups; lookup++) {
        uint64_t state = (uint64_t)lookup * 2654435761u + 1;
        int material = (int)(draw(&state) % MATERIALS);
        double energy = (double)(draw(&state) % 1000) / 1000.0, again = 0;
        for (int nuclide = nuclides[material] - 1; nuclide >= 0; nuclide--) {
            again += contribution(nuclide, energy);
        }
        if (fabs(sums[lookup] - again) > 1e-9 * again) {
            fail(PROGRAM, "lookup %ld has %.17g, not %.17g", lookup, sums[lookup], again);
        }
        total += sums[lookup];
    }
    printf("%ld lookups, cross sections of %.6f\n", lookups, total);
    return 0;
}
