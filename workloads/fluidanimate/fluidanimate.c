/* Smoothed-particle hydrodynamics in a box: the fluid is a set of particles, and each feels those nearer than one cell's
 * side. Space is a grid of cells, thread t owns a run of them, and particles move from cell to cell.
 *
 *     fluidanimate [-p THREADS] [-n PARTICLES] [-s STEPS]
 *
 * A step, with a barrier after each phase:
 *
 *     1. sort       the particles of the thread's cells go into the lists of the cells in which they are now
 *     2. densities  each pair of near particles adds to the density of both
 *     3. forces     each pair adds pressure and viscosity to the acceleration of both
 *     4. advance    velocities and positions; walls push back
 *
 * A thread visits the pairs of its own cells with themselves and with half of their neighbours, so it writes to particles in
 * cells of other threads: cells that two threads reach, and only those, are locked. Lanes part by how many particles a cell
 * has, by whether two are near, and by whether a cell is locked. As in PARSEC's program, both sides of the last add in
 * place, without a call; sorting, which calls a function, tests before it and behind it whether there is a lock.
 *
 * Sums are kept in fixed point, where the order of additions does not matter: results are the same for any number of
 * threads. Checks: each particle is in one cell, and in the right one; the densities of the last step against the sum over
 * all pairs; forces between particles add up to zero, exactly. */
#include <math.h>

#include "crew.h"

static const char usage[] = "fluidanimate [-p THREADS] [-n PARTICLES] [-s STEPS]\n"
                            "  -p THREADS    threads, 1 to 1024 (default 4)\n"
                            "  -n PARTICLES  particles, 2 to 1000000 (default 300)\n"
                            "  -s STEPS      steps of time, 1 to 10000 (default 2)\n";

/* Fixed point: 2^24 per unit. Sums of a million terms of size 1000 stay far below 2^63. */
#define UNIT 16777216.0

enum { DIMENSIONS = 3, HALF_NEIGHBOURS = 13 };

struct particle {
    double at[DIMENSIONS];
    double velocity[DIMENSIONS];
    int64_t density;
    int64_t push[DIMENSIONS]; /* what the others add to its acceleration */
    long cell;
    long next; /* the next in the list of its cell; -1 at the end */
};

static long thread_count = 4;
static long particle_count = 300;
static long steps = 2;

static long side;       /* cells along an edge of the box, whose edges are as many units long */
static long cell_count; /* side^3 */
static struct particle *particles;
static long *first_of;              /* by cell: the first particle of its list; -1 for none */
static long *old_first_of;          /* the same at the end of the step before */
static unsigned char *shared;       /* by cell: whether a neighbour is another thread's */
static pthread_mutex_t *cell_locks; /* by cell */
static pthread_barrier_t phase_end;

/* Near the gas constant, rest density and so on of nothing in particular: the fluid neither freezes nor explodes. */
static const double mass = 1.0, stiffness = 0.6, rest_density = 2.0, viscosity = 0.4, gravity = -3.0, step_time = 0.01;

/* In a step no particle moves farther than to a neighbouring cell, whose list its thread may then write to. */
static const double most_speed = 50.0;

static long first_cell(long id) {
    return cell_count * id / thread_count;
}

static long owner_of(long cell) {
    long id = cell * thread_count / cell_count;
    while (first_cell(id + 1) <= cell) {
        id++;
    }
    while (first_cell(id) > cell) {
        id--;
    }
    return id;
}

/* The n-th of 26 neighbours of a cell, -1 outside the box; the first 13 are those that come after it in every order. */
static long neighbour(long cell, int n) {
    int code = n < HALF_NEIGHBOURS ? 14 + n : 25 - n;
    long x = cell % side + code % 3 - 1, y = cell / side % side + code / 3 % 3 - 1, z = cell / side / side + code / 9 - 1;
    int outside = x < 0 || y < 0 || z < 0 || x >= side || y >= side || z >= side;
    return outside ? -1 : (z * side + y) * side + x;
}

static long cell_at(const double *at) {
    long cell = 0;
    for (int d = DIMENSIONS - 1; d >= 0; d--) {
        long place = (long)at[d];
        cell = cell * side + (place < 0 ? 0 : place >= side ? side - 1 : place);
    }
    return cell;
}

static AS_WRITTEN void put_into(long cell, long index) {
    particles[index].cell = cell;
    particles[index].next = first_of[cell];
    first_of[cell] = index;
}

static inline void add_density(long index, int64_t amount) {
    particles[index].density += amount;
}

static inline void add_push(long index, const int64_t *amount, int64_t sign) {
    for (int d = 0; d < DIMENSIONS; d++) {
        particles[index].push[d] += sign * amount[d];
    }
}

/* Puts a particle into the list of its cell, which is that of before or a neighbour. */
static AS_WRITTEN void sort_one(long index) {
    long cell = cell_at(particles[index].at);
    if (shared[cell]) {
        pthread_mutex_lock(&cell_locks[cell]);
    }
    put_into(cell, index);
    if (shared[cell]) {
        pthread_mutex_unlock(&cell_locks[cell]);
    }
}

static AS_WRITTEN void share_density(long index, int64_t amount) {
    long cell = particles[index].cell;
    if (shared[cell]) {
        pthread_mutex_lock(&cell_locks[cell]);
        add_density(index, amount);
        pthread_mutex_unlock(&cell_locks[cell]);
    } else {
        add_density(index, amount);
    }
}

static AS_WRITTEN void share_push(long index, const int64_t *amount, int64_t sign) {
    long cell = particles[index].cell;
    if (shared[cell]) {
        pthread_mutex_lock(&cell_locks[cell]);
        add_push(index, amount, sign);
        pthread_mutex_unlock(&cell_locks[cell]);
    } else {
        add_push(index, amount, sign);
    }
}

static double square_distance(const struct particle *a, const struct particle *b) {
    double sum = 0;
    for (int d = 0; d < DIMENSIONS; d++) {
        double apart = a->at[d] - b->at[d];
        sum += apart * apart;
    }
    return sum;
}

/* What two particles add to each other's density: (1 - r^2)^3 within the unit distance. */
static AS_WRITTEN int64_t pair_density(long one, long other) {
    double r2 = square_distance(&particles[one], &particles[other]);
    if (r2 >= 1.0) {
        return 0;
    }
    double near = 1.0 - r2;
    return llrint(mass * near * near * near * UNIT);
}

static double density_of(const struct particle *p) {
    return mass + (double)p->density / UNIT;
}

/* What `other` adds to the acceleration of `one`; the opposite holds for the other way. Returns 0 where they are not near. */
static AS_WRITTEN int pair_push(long one, long other, int64_t *push) {
    const struct particle *a = &particles[one], *b = &particles[other];
    double r2 = square_distance(a, b);
    if (r2 >= 1.0) {
        return 0;
    }
    double r = sqrt(r2) + 1e-9, near = 1.0 - r, densities = density_of(a) * density_of(b);
    double pressure = stiffness * (density_of(a) + density_of(b) - 2 * rest_density) * near * near / r;
    for (int d = 0; d < DIMENSIONS; d++) {
        double away = pressure * (a->at[d] - b->at[d]);
        double drag = viscosity * near * (b->velocity[d] - a->velocity[d]);
        push[d] = llrint((away + drag) / densities * UNIT);
    }
    return 1;
}

/* Pairs are always taken in the order of their numbers, so that rounding does not depend on the order in a list. */
static void densities_of(long a, long b) {
    int64_t amount = a < b ? pair_density(a, b) : pair_density(b, a);
    if (amount != 0) {
        share_density(a, amount);
        share_density(b, amount);
    }
}

static void forces_of(long a, long b) {
    int64_t push[DIMENSIONS];
    long one = a < b ? a : b, other = a < b ? b : a;
    if (pair_push(one, other, push)) {
        share_push(one, push, 1);
        share_push(other, push, -1);
    }
}

/* Calls `visit` for each pair of near cells' particles that this thread is to see. */
static void for_pairs(long id, void (*visit)(long, long)) {
    for (long cell = first_cell(id); cell < first_cell(id + 1); cell++) {
        for (long a = first_of[cell]; a >= 0; a = particles[a].next) {
            for (long b = particles[a].next; b >= 0; b = particles[b].next) {
                visit(a, b);
            }
            for (int n = 0; n < HALF_NEIGHBOURS; n++) {
                long near = neighbour(cell, n);
                for (long b = near < 0 ? -1 : first_of[near]; b >= 0; b = particles[b].next) {
                    visit(a, b);
                }
            }
        }
    }
}

static AS_WRITTEN void clear_phase(long id) {
    for (long cell = first_cell(id); cell < first_cell(id + 1); cell++) {
        old_first_of[cell] = first_of[cell];
        first_of[cell] = -1;
    }
}

static AS_WRITTEN void sort_phase(long id) {
    for (long cell = first_cell(id); cell < first_cell(id + 1); cell++) {
        for (long i = old_first_of[cell], next; i >= 0; i = next) {
            next = particles[i].next;
            particles[i].density = 0;
            memset(particles[i].push, 0, sizeof particles[i].push);
            sort_one(i);
        }
    }
}

static AS_WRITTEN void density_phase(long id) {
    for_pairs(id, densities_of);
}

static AS_WRITTEN void force_phase(long id) {
    for_pairs(id, forces_of);
}

static AS_WRITTEN void advance_phase(long id) {
    for (long i = particle_count * id / thread_count; i < particle_count * (id + 1) / thread_count; i++) {
        struct particle *p = &particles[i];
        for (int d = 0; d < DIMENSIONS; d++) {
            double acceleration = (double)p->push[d] / UNIT + (d == 1 ? gravity : 0.0);
            p->velocity[d] = fmax(-most_speed, fmin(most_speed, p->velocity[d] + acceleration * step_time));
            p->at[d] += p->velocity[d] * step_time;
            if (p->at[d] < 0) {
                p->at[d] = -p->at[d];
                p->velocity[d] *= -0.5;
            } else if (p->at[d] > (double)side) {
                p->at[d] = 2.0 * (double)side - p->at[d];
                p->velocity[d] *= -0.5;
            }
        }
    }
}

static AS_WRITTEN void *worker(void *argument) {
    long id = (long)(intptr_t)argument;
    for (long step = 0; step < steps; step++) {
        clear_phase(id);
        pthread_barrier_wait(&phase_end);
        sort_phase(id);
        pthread_barrier_wait(&phase_end);
        density_phase(id);
        pthread_barrier_wait(&phase_end);
        force_phase(id);
        pthread_barrier_wait(&phase_end);
        /* The last step stops here, so that densities and forces can be checked where the particles are. */
        if (step + 1 < steps) {
            advance_phase(id);
            pthread_barrier_wait(&phase_end);
        }
    }
    return NULL;
}

static double random_unit(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* A block of fluid in the lower half of the box, about four particles to a cell, at rest except for a little noise. */
static void fill_box(void) {
    uint64_t state = 2026;
    for (long i = 0; i < particle_count; i++) {
        for (int d = 0; d < DIMENSIONS; d++) {
            particles[i].at[d] = random_unit(&state) * (double)side * (d == 1 ? 0.5 : 1.0);
            particles[i].velocity[d] = random_unit(&state) - 0.5;
        }
        put_into(cell_at(particles[i].at), i);
    }
}

/* Particles move, and pairs reach, from a cell to its neighbours. */
static void find_shared_cells(void) {
    for (long cell = 0; cell < cell_count; cell++) {
        for (int n = 0; n < 2 * HALF_NEIGHBOURS; n++) {
            long near = neighbour(cell, n);
            shared[cell] |= near >= 0 && owner_of(near) != owner_of(cell);
        }
    }
}

static void check_cells(void) {
    long listed = 0;
    for (long cell = 0; cell < cell_count; cell++) {
        for (long i = first_of[cell]; i >= 0; i = particles[i].next) {
            if (cell_at(particles[i].at) != cell || particles[i].cell != cell) {
                fail("fluidanimate", "particle %ld is in the list of cell %ld, which is not where it is", i, cell);
            }
            listed++;
        }
    }
    if (listed != particle_count) {
        fail("fluidanimate", "%ld particles are in lists where there are %ld", listed, particle_count);
    }
}

static void check_sums(void) {
    int64_t total[DIMENSIONS] = {0};
    for (long i = 0; i < particle_count; i++) {
        for (int d = 0; d < DIMENSIONS; d++) {
            total[d] += particles[i].push[d];
        }
        /* All pairs of a few particles: all pairs of all would take longer than the simulation. */
        if (i % (particle_count / 64 + 1) == 0) {
            int64_t density = 0;
            for (long j = 0; j < particle_count; j++) {
                density += j == i ? 0 : j < i ? pair_density(j, i) : pair_density(i, j);
            }
            if (density != particles[i].density) {
                fail("fluidanimate", "particle %ld has density %ld where the sum over all others is %ld", i,
                     (long)particles[i].density, (long)density);
            }
        }
    }
    if (total[0] != 0 || total[1] != 0 || total[2] != 0) {
        fail("fluidanimate", "the forces between particles add up to (%ld, %ld, %ld), not to zero", (long)total[0],
             (long)total[1], (long)total[2]);
    }
}

static void read_arguments(int count, char **arguments) {
    int option;
    while ((option = getopt(count, arguments, "hp:n:s:")) != -1) {
        switch (option) {
        case 'p':
            thread_count = number_argument(usage, option, optarg, 1, MAX_THREADS);
            break;
        case 'n':
            particle_count = number_argument(usage, option, optarg, 2, 1000000);
            break;
        case 's':
            steps = number_argument(usage, option, optarg, 1, 10000);
            break;
        case 'h':
            printf("usage: %s", usage);
            exit(0);
        default:
            usage_error(usage);
        }
    }
    if (optind < count) {
        usage_error(usage);
    }
}

int main(int count, char **arguments) {
    read_arguments(count, arguments);
    side = 2;
    while (side * side * side * 2 < particle_count) {
        side++;
    }
    cell_count = side * side * side;
    particles = zeroed("fluidanimate", (size_t)particle_count, sizeof *particles);
    first_of = zeroed("fluidanimate", (size_t)cell_count, sizeof *first_of);
    old_first_of = zeroed("fluidanimate", (size_t)cell_count, sizeof *old_first_of);
    shared = zeroed("fluidanimate", (size_t)cell_count, sizeof *shared);
    cell_locks = zeroed("fluidanimate", (size_t)cell_count, sizeof *cell_locks);
    pthread_t *threads = zeroed("fluidanimate", (size_t)thread_count, sizeof *threads);
    for (long cell = 0; cell < cell_count; cell++) {
        pthread_mutex_init(&cell_locks[cell], NULL);
        first_of[cell] = -1;
    }
    pthread_barrier_init(&phase_end, NULL, (unsigned)thread_count);
    fill_box();
    find_shared_cells();
    start_threads("fluidanimate", threads, 0, thread_count, worker);
    join_threads("fluidanimate", threads, 0, thread_count);
    check_cells();
    check_sums();
    int64_t density = 0, work = 0;
    for (long i = 0; i < particle_count; i++) {
        density += particles[i].density;
        for (int d = 0; d < DIMENSIONS; d++) {
            work += llrint(particles[i].at[d] * UNIT) % 1000 + particles[i].push[d] % 1000;
        }
    }
    printf("%ld particles in %ld cells, %ld steps: densities %ld, checksum %ld\n", particle_count, cell_count, steps,
           (long)density, (long)work);
    free(threads);
    free(cell_locks);
    free(shared);
    free(old_first_of);
    free(first_of);
    free(particles);
    return 0;
}
