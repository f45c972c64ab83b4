/* Light in a Cornell box of spheres: a task is a sample of a pixel, whose ray leaves the eye (the prolog) and goes from
 * surface to surface (the inner loop), diffusely, by a mirror or through glass, until Russian roulette ends it, which
 * is played from the second bounce on, or the 40th bounce does. So some rays have two bounces and some have thirty. A
 * new ray costs little. Predicted: the body of the inner loop.
 *
 * Places that look alike and do not pay: a sphere that is hit from inside, the mirror, the glass and its total
 * reflection, the light, and the draw of the roulette.
 *
 * The check computes each sample again by recursion, where what a surface sends is the sum of its own light and of
 * what the next one sends. */
#define PROGRAM "pathtracer"
#define TASKS 512

#include "../../include/numbers.h"
#include "../../include/tasks.h"

enum { WIDTH = 32, PIXELS = WIDTH * WIDTH, MOST = 40, SURE = 1, FIXED = 9, BALLS = 15, SPHERES = FIXED + BALLS };
enum surface { DIFFUSE, MIRROR, GLASS };

struct vector {
    double x, y, z;
};

struct ray {
    struct vector from, along;
};

static struct sphere {
    double radius;
    struct vector at;
    double color, light;
    enum surface surface;
} spheres[SPHERES] = {
    {1e3, {1e3 + 1, 40.8, 81.6}, 0.88, 0, DIFFUSE},   {1e3, {-1e3 + 99, 40.8, 81.6}, 0.85, 0, DIFFUSE},
    {1e3, {50, 40.8, 1e3}, 0.88, 0, DIFFUSE},         {1e3, {50, 40.8, -1e3 + 170}, 0.7, 0, DIFFUSE},
    {1e3, {50, 1e3, 81.6}, 0.88, 0, DIFFUSE},         {1e3, {50, -1e3 + 81.6, 81.6}, 0.88, 0, DIFFUSE},
    {16.5, {27, 16.5, 47}, 0.95, 0, MIRROR},          {16.5, {73, 16.5, 78}, 0.95, 0, GLASS},
    {600, {50, 681.6 - 0.27, 81.6}, 0.3, 12, DIFFUSE},
};
static double *samples;
/* The ray of each pixel. */
static struct ray eye[PIXELS];

WORKLOADS_INLINE struct vector sum(struct vector a, double scale, struct vector b) {
    return (struct vector){a.x + scale * b.x, a.y + scale * b.y, a.z + scale * b.z};
}

WORKLOADS_INLINE double dot(struct vector a, struct vector b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

WORKLOADS_INLINE struct vector unit(struct vector a) {
    double scale = 1 / sqrt(dot(a, a));
    return (struct vector){a.x * scale, a.y * scale, a.z * scale};
}

/* The ray from the eye through a pixel. */
static struct ray seen(int pixel) {
    double x = (pixel % WIDTH + 0.5) / WIDTH - 0.5, y = (pixel / WIDTH + 0.5) / WIDTH - 0.5;
    struct vector along = unit((struct vector){0.7 * x, 0.7 * y - 0.042, -1});
    return (struct ray){sum((struct vector){50, 52, 295.6}, 140, along), along};
}

static void prepare(void) {
    samples = zeroed(PROGRAM, (size_t)tasks, sizeof *samples);
    for (int pixel = 0; pixel < PIXELS; pixel++) {
        eye[pixel] = seen(pixel);
    }
    /* Balls that hang in three rows at the back. */
    for (int i = 0; i < BALLS; i++) {
        struct vector at = {10 + 20 * (i % 5), 45 + 14 * (double)(i / 5), 30};
        spheres[FIXED + i] = (struct sphere){5, at, i % 2 == 0 ? 0.9 : 0.8, 0, DIFFUSE};
    }
}

/* The distance to a sphere, 1e20 where it is not hit. */
WORKLOADS_INLINE double to_sphere(const struct sphere *sphere, const struct ray *ray) {
    struct vector to = sum(sphere->at, -1, ray->from);
    double middle = dot(to, ray->along), square = middle * middle - dot(to, to) + sphere->radius * sphere->radius;
    /* Where the ray goes past, there is no root, and no comparison with it holds. */
    double half = sqrt(square), near = middle - half, far = middle + half, first = near > 1e-4 ? near : far;
    return first > 1e-4 ? first : 1e20;
}

/* Where a ray goes that was reflected or let through. */
WORKLOADS_INLINE struct vector sent_on(const struct sphere *sphere, struct vector at, struct vector along,
                                       uint64_t *seed) {
    struct vector out = unit(sum(at, -1, sphere->at)), normal = out;
    double cosine = dot(out, along);
    if (cosine > 0) {
        normal = (struct vector){-out.x, -out.y, -out.z};
    }
    if (sphere->surface == DIFFUSE) {
        double turn = drawn(seed), square = drawn(seed), root = sqrt(square);
        int is_steep = fabs(normal.x) > 0.1;
        struct vector up = {is_steep ? 0 : 1, is_steep ? 1 : 0, 0};
        struct vector u = unit((struct vector){up.y * normal.z - up.z * normal.y, up.z * normal.x - up.x * normal.z,
                                               up.x * normal.y - up.y * normal.x});
        struct vector v = {normal.y * u.z - normal.z * u.y, normal.z * u.x - normal.x * u.z,
                           normal.x * u.y - normal.y * u.x};
        struct vector flat = sum((struct vector){0, 0, 0}, cosine_of_turn(turn) * root, u);
        return unit(sum(sum(flat, sine_of_turn(turn) * root, v), sqrt(1 - square), normal));
    }
    struct vector mirrored = sum(along, -2 * cosine, out);
    if (sphere->surface == MIRROR) {
        return mirrored;
    }
    double ratio = cosine < 0 ? 1 / 1.5 : 1.5, angle = fabs(cosine);
    double through = 1 - ratio * ratio * (1 - angle * angle);
    if (through < 0) {
        return mirrored;
    }
    double left = 1 - (cosine < 0 ? angle : sqrt(through)), share = 0.04 + 0.96 * left * left * left * left * left;
    if (drawn(seed) < share) {
        return mirrored;
    }
    struct vector straight = sum((struct vector){0, 0, 0}, ratio, along);
    return unit(sum(straight, ratio * angle - sqrt(through), normal));
}

static AS_WRITTEN void kernel(long first) {
    LOCKSTEP_PREDICT(bounce);
    for (long sample = first; sample < tasks; sample += threads) {
        uint64_t seed = seed_of((uint64_t)sample);
        struct ray ray = eye[sample % PIXELS];
        double light = 0, weight = 1;
        int bounce = 0;
        while (bounce < MOST) {
            LOCKSTEP_RECONVERGE(bounce);
            double nearest = 1e20;
            int hit = 0;
            for (int i = 0; i < SPHERES; i++) {
                double distance = to_sphere(&spheres[i], &ray);
                if (distance < nearest) {
                    nearest = distance;
                    hit = i;
                }
            }
            const struct sphere *sphere = &spheres[hit];
            light += weight * sphere->light;
            bounce++;
            /* Both sides are asked: else rays of the first bounce would reach what follows by a way of their own. */
            if ((bounce > SURE) & (drawn(&seed) >= sphere->color)) {
                bounce = MOST;
            } else {
                weight *= bounce > SURE ? 1 : sphere->color;
                ray.from = sum(ray.from, nearest, ray.along);
                ray.along = sent_on(sphere, ray.from, ray.along, &seed);
            }
            END_OF_TURN(bounce);
        }
        samples[sample] = light;
    }
}

static double radiance(struct ray ray, int bounce, uint64_t *seed) {
    const struct sphere *sphere = NULL;
    double nearest = 1e20;
    for (int i = SPHERES - 1; i >= 0; i--) {
        double distance = to_sphere(&spheres[i], &ray);
        if (distance <= nearest && distance < 1e20) {
            nearest = distance;
            sphere = &spheres[i];
        }
    }
    if (sphere == NULL || bounce == MOST) {
        return 0;
    }
    double lot = drawn(seed);
    if (bounce >= SURE && lot >= sphere->color) {
        return sphere->light;
    }
    struct vector at = sum(ray.from, nearest, ray.along);
    struct ray next = {at, sent_on(sphere, at, ray.along, seed)};
    return sphere->light + (bounce >= SURE ? 1 : sphere->color) * radiance(next, bounce + 1, seed);
}

static void check(void) {
    double all = 0;
    for (long sample = 0; sample < tasks; sample++) {
        uint64_t seed = seed_of((uint64_t)sample);
        double again = radiance(seen((int)(sample % PIXELS)), 0, &seed);
        if (!(fabs(samples[sample] - again) <= 1e-6 * (1 + again))) {
            fail(PROGRAM, "sample %ld is %.17g, not %.17g", sample, samples[sample], again);
        }
        all += again;
    }
    printf("%ld samples, light of %.5f\n", tasks, all / (double)tasks);
}

RUN_TASKS
