/* Particles in a mesh, after the Monte Carlo Benchmark: a task is a particle that is born in the mesh (the prolog) and
 * followed from event to event (the inner loop): it collides, crosses into the next cell, or its time is up. A
 * collision absorbs or scatters it; behind the outermost cells it is reflected or lost. The time step ends after one
 * event or after a hundred, so lanes leave the inner loop at different times. Predicted: the body of the inner loop.
 *
 * Places that look alike and do not pay: the draw of a direction, which is done again where the numbers do not fit, at
 * birth and at each collision; absorption; the mesh's end; which of three surfaces is the nearest.
 *
 * Counts and lengths are whole numbers, whose sums do not depend on the order. The check: no particle is lost, each
 * cell's paths add up to those of the particles, and cells have as many collisions as their paths let expect. */
#define PROGRAM "mcb"
#define TASKS 512

#include "../../include/numbers.h"
#include "../../include/tasks.h"

enum { SIDE = 6, CELLS = SIDE * SIDE * SIDE, KINDS = 3 };

/* Collisions per length, and how many of 256 absorb. */
static const struct {
    double total;
    unsigned absorbs;
} kinds[KINDS] = {{0.15, 20}, {1.5, 12}, {4.0, 60}};

/* Lengths are counted in parts of a cell. */
#define PARTS 1048576.0

static unsigned char kind_of[CELLS];
static struct {
    unsigned long path, collisions;
} cells[CELLS];
enum fate { ABSORBED, LOST, ENDED, FATES };
static struct {
    unsigned long path;
    enum fate fate;
} *particles;

static void prepare(void) {
    particles = zeroed(PROGRAM, (size_t)tasks, sizeof *particles);
    for (int cell = 0; cell < CELLS; cell++) {
        int x = cell % SIDE, y = cell / SIDE % SIDE, z = cell / SIDE / SIDE;
        int is_inside = x > 0 && x < SIDE - 1 && y > 0 && y < SIDE - 1 && z > 0 && z < SIDE - 1;
        kind_of[cell] = (unsigned char)(!is_inside ? 0 : (x + y + z) % 4 == 0 ? 2 : 1);
    }
}

struct direction {
    double x, y, z;
};

/* A direction, each as likely as another: a point in a ball, and again where it is none. */
static inline struct direction drawn_direction(uint64_t *seed) {
    double x, y, z, square;
    do {
        x = 2 * drawn(seed) - 1;
        y = 2 * drawn(seed) - 1;
        z = 2 * drawn(seed) - 1;
        square = x * x + y * y + z * z;
    } while (square > 1 || square < 1e-3);
    double scale = 1 / sqrt(square);
    return (struct direction){x * scale, y * scale, z * scale};
}

static inline double smaller(double a, double b) {
    return a < b ? a : b;
}

/* How far it is along an axis to the end of the cell. */
static inline double to_surface(double at, int cell, double along) {
    double to = along > 0 ? cell + 1 - at : at - cell;
    return to / (fabs(along) + 1e-9);
}

static AS_WRITTEN void kernel(long first) {
    LOCKSTEP_PREDICT(event);
    for (long particle = first; particle < tasks; particle += threads) {
        uint64_t seed = seed_of((uint64_t)particle);
        double x = SIDE * drawn(&seed), y = SIDE * drawn(&seed), z = SIDE * drawn(&seed), left = 12 * drawn(&seed);
        int i = (int)x, j = (int)y, k = (int)z;
        struct direction along = drawn_direction(&seed);
        unsigned long path = 0;
        enum fate fate = FATES;
        while (fate == FATES) {
            LOCKSTEP_RECONVERGE(event);
            int cell = (k * SIDE + j) * SIDE + i, kind = kind_of[cell];
            double to_collision = -logarithm(drawn(&seed) + 0x1p-33) / kinds[kind].total;
            double to_x = to_surface(x, i, along.x), to_y = to_surface(y, j, along.y), to_z = to_surface(z, k, along.z);
            double to_cell = smaller(to_x, smaller(to_y, to_z)), step = smaller(left, smaller(to_collision, to_cell));
            step = step > 0 ? step : 0;
            x += along.x * step;
            y += along.y * step;
            z += along.z * step;
            left -= step;
            unsigned long parts = (unsigned long)(step * PARTS);
            path += parts;
            __atomic_fetch_add(&cells[cell].path, parts, __ATOMIC_RELAXED);
            if (left <= 0) {
                fate = ENDED;
            } else if (to_collision <= to_cell) {
                __atomic_fetch_add(&cells[cell].collisions, 1, __ATOMIC_RELAXED);
                if (drawn_bits(&seed) % 256 < kinds[kind].absorbs) {
                    fate = ABSORBED;
                } else {
                    along = drawn_direction(&seed);
                }
            } else {
                int *index = to_cell == to_x ? &i : to_cell == to_y ? &j : &k;
                double *toward = to_cell == to_x ? &along.x : to_cell == to_y ? &along.y : &along.z;
                int next = *index + (*toward > 0 ? 1 : -1);
                if (next >= 0 && next < SIDE) {
                    *index = next;
                } else if (drawn_bits(&seed) % 4 == 0) {
                    fate = LOST;
                } else {
                    *toward = -*toward;
                }
            }
            END_OF_TURN(fate);
        }
        particles[particle].path = path;
        particles[particle].fate = fate;
    }
}

static void check(void) {
    unsigned long fates[FATES + 1] = {0}, paths = 0, of_cells = 0, collisions[KINDS] = {0}, of_kind[KINDS] = {0};
    for (long particle = 0; particle < tasks; particle++) {
        fates[particles[particle].fate]++;
        paths += particles[particle].path;
    }
    for (int cell = 0; cell < CELLS; cell++) {
        of_cells += cells[cell].path;
        of_kind[kind_of[cell]] += cells[cell].path;
        collisions[kind_of[cell]] += cells[cell].collisions;
    }
    if (fates[ABSORBED] + fates[LOST] + fates[ENDED] != (unsigned long)tasks) {
        fail(PROGRAM, "%lu particles have no fate", fates[FATES]);
    }
    if (paths != of_cells) {
        fail(PROGRAM, "particles went %lu, and %lu is in cells", paths, of_cells);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        double expected = kinds[kind].total * (double)of_kind[kind] / PARTS;
        if (fabs((double)collisions[kind] - expected) > 6 * sqrt(expected) + 6) {
            fail(PROGRAM, "%lu collisions in cells of kind %d, where about %.0f belong", collisions[kind], kind,
                 expected);
        }
    }
    printf("%lu absorbed, %lu lost, %lu left at the end; paths of %lu, collisions %lu %lu %lu\n", fates[ABSORBED],
           fates[LOST], fates[ENDED], paths, collisions[0], collisions[1], collisions[2]);
}

RUN_TASKS
