/* Rays through the pixels of an image: a thread has pixels of its own. A ray looks for the nearest of some balls over a
 * floor, asks whether a lamp is hidden by any, and goes on from a mirror. Misses are passed over in several steps, the
 * first ball in front of the lamp is enough, and a ray ends in the sky, on what is no mirror, after a number of mirrors, or
 * when it is too dim.
 *
 * The check follows each ray by recursion with twice the digits. */
#define PROGRAM "ray"

#include "group.h"

enum { BALLS = 6, PIXELS = 3, MIRRORS = 4, NOTHING = -1, FLOOR = BALLS };

struct ball {
    float x, y, z, radius, mirror, grey;
};

DATA struct ball balls[BALLS];
DATA float image[MAX_GROUPS][PIXELS][BLOCK];

static void prepare(long group) {
    if (group == 0) {
        for (unsigned i = 0; i < BALLS; i++) {
            unsigned number = scrambled(i + 5);
            balls[i] = (struct ball){(float)(number % 64) / 8.0f - 4.0f, 0.5f + (float)(number >> 6 & 15) / 8.0f,
                                     4.0f + (float)(number >> 10 & 31) / 6.0f, 0.75f + (float)(number >> 15 & 7) / 12.0f,
                                     i % 2 == 0 ? 0.75f : 0.0f, 0.3f + 0.1f * (float)i};
        }
    }
}

static inline __attribute__((always_inline)) float root(float number) {
    unsigned bits;
    __builtin_memcpy(&bits, &number, sizeof bits);
    bits = (bits >> 1) + 0x1fbd1df5;
    float guess;
    __builtin_memcpy(&guess, &bits, sizeof guess);
    guess = 0.5f * (guess + number / guess);
    guess = 0.5f * (guess + number / guess);
    return 0.5f * (guess + number / guess);
}

/* Where the lamp is, and the direction in which a pixel is seen. */
#define LAMP_X 3.0f
#define LAMP_Y 9.0f
#define LAMP_Z -2.0f
static inline float seen_x(unsigned number) {
    return ((float)(number % 61) - 30.0f) / 40.0f;
}
static inline float seen_y(unsigned number) {
    return ((float)(number / 61 % 47) - 30.0f) / 50.0f;
}

static AS_WRITTEN void kernel(long group, unsigned thread) {
    AS_LOOP for (unsigned pixel = 0; pixel < PIXELS; pixel++) {
        unsigned number = scrambled((unsigned)group * 64 + pixel * 8191) + thread;
        float x = 0, y = 1.47f, z = -3, to_x = seen_x(number), to_y = seen_y(number), to_z = 1, light = 0, share = 1;
        float length = root(to_x * to_x + to_y * to_y + 1.0f);
        to_x /= length;
        to_y /= length;
        to_z /= length;
        AS_LOOP for (unsigned mirrors = 0;; mirrors++) {
            float nearest = 1e9f;
            int hit = NOTHING;
            AS_LOOP for (int i = 0; i < BALLS; i++) {
                float dx = balls[i].x - x, dy = balls[i].y - y, dz = balls[i].z - z;
                float along = dx * to_x + dy * to_y + dz * to_z;
                if (along < 0) {
                    continue;
                }
                float square = dx * dx + dy * dy + dz * dz - along * along, radius = balls[i].radius;
                if (square > radius * radius) {
                    continue;
                }
                float distance = along - root(radius * radius - square + 1e-12f);
                if (distance > 1e-3f && distance < nearest) {
                    nearest = distance;
                    hit = i;
                }
            }
            if (to_y < -1e-6f && (hit == NOTHING || -y / to_y < nearest)) {
                nearest = -y / to_y;
                hit = FLOOR;
            }
            if (hit == NOTHING) {
                light += share * (0.4f + 0.3f * to_y);
                goto done;
            }
            x += nearest * to_x;
            y += nearest * to_y;
            z += nearest * to_z;
            float normal_x = 0, normal_y = 1, normal_z = 0, grey, mirror = 0;
            if (hit == FLOOR) {
                grey = (((int)(x + 512.0f) ^ (int)(z + 512.0f)) & 1) != 0 ? 0.8f : 0.3f;
            } else {
                normal_x = (x - balls[hit].x) / balls[hit].radius;
                normal_y = (y - balls[hit].y) / balls[hit].radius;
                normal_z = (z - balls[hit].z) / balls[hit].radius;
                grey = balls[hit].grey;
                mirror = balls[hit].mirror;
            }
            float lamp_x = LAMP_X - x, lamp_y = LAMP_Y - y, lamp_z = LAMP_Z - z;
            float far = root(lamp_x * lamp_x + lamp_y * lamp_y + lamp_z * lamp_z);
            lamp_x /= far;
            lamp_y /= far;
            lamp_z /= far;
            float cosine = lamp_x * normal_x + lamp_y * normal_y + lamp_z * normal_z, lit = 0.1f;
            if (cosine > 0) {
                AS_LOOP for (int i = 0; i < BALLS; i++) {
                    float dx = balls[i].x - x, dy = balls[i].y - y, dz = balls[i].z - z;
                    float along = dx * lamp_x + dy * lamp_y + dz * lamp_z;
                    if (i != hit && along > 0 &&
                        dx * dx + dy * dy + dz * dz - along * along < balls[i].radius * balls[i].radius) {
                        goto hidden;
                    }
                }
                lit += cosine;
            }
        hidden:
            light += share * (1.0f - mirror) * grey * lit;
            share *= mirror;
            if (mirror == 0 || mirrors == MIRRORS || share < 0.05f) {
                break;
            }
            float twice = 2.0f * (to_x * normal_x + to_y * normal_y + to_z * normal_z);
            to_x -= twice * normal_x;
            to_y -= twice * normal_y;
            to_z -= twice * normal_z;
        }
    done:
        image[group][pixel][thread] = light;
    }
}

struct vector {
    double x, y, z;
};

static double dot(struct vector a, struct vector b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct vector moved(struct vector from, struct vector to, double by) {
    return (struct vector){from.x + by * to.x, from.y + by * to.y, from.z + by * to.z};
}

static double square_root(double number) {
    double guess = number > 1 ? number : 1;
    for (int i = 0; i < 60; i++) {
        guess = 0.5 * (guess + number / guess);
    }
    return guess;
}

/* How far a ball is in a direction of length 1, or a negative number: from the quadratic equation. */
static double distance_to(const struct ball *ball, struct vector from, struct vector to) {
    struct vector between = {from.x - ball->x, from.y - ball->y, from.z - ball->z};
    double half = dot(between, to), rest = dot(between, between) - (double)ball->radius * ball->radius;
    double discriminant = half * half - rest;
    return discriminant < 0 ? -1 : -half - square_root(discriminant);
}

static double followed(struct vector from, struct vector to, int mirrors, double share, int own) {
    double nearest = to.y < 0 ? -from.y / to.y : 1e9;
    const struct ball *hit = NULL;
    for (int i = 0; i < BALLS; i++) {
        double distance = i == own ? -1 : distance_to(&balls[i], from, to);
        if (distance > 1e-3 && distance < nearest) {
            nearest = distance;
            hit = &balls[i];
        }
    }
    if (hit == NULL && to.y >= 0) {
        return 0.4 + 0.3 * to.y;
    }
    struct vector at = moved(from, to, nearest), normal = {0, 1, 0};
    double grey = (((int)(at.x + 512) ^ (int)(at.z + 512)) & 1) != 0 ? 0.8 : 0.3, mirror = 0;
    if (hit != NULL) {
        struct vector centre = {hit->x, hit->y, hit->z};
        normal = moved((struct vector){0, 0, 0}, moved(at, centre, -1), 1 / (double)hit->radius);
        grey = (double)hit->grey;
        mirror = (double)hit->mirror;
    }
    struct vector lamp = moved((struct vector){LAMP_X, LAMP_Y, LAMP_Z}, at, -1);
    lamp = moved((struct vector){0, 0, 0}, lamp, 1 / square_root(dot(lamp, lamp)));
    int is_hidden = 0;
    for (int i = 0; i < BALLS; i++) {
        is_hidden |= &balls[i] != hit && distance_to(&balls[i], at, lamp) > 0;
    }
    double cosine = dot(lamp, normal), lit = 0.1 + (cosine > 0 && !is_hidden ? cosine : 0);
    double light = (1 - mirror) * grey * lit;
    if (mirror == 0 || mirrors == MIRRORS || share * mirror < 0.05) {
        return light;
    }
    return light + mirror * followed(at, moved(to, normal, -2 * dot(to, normal)), mirrors + 1, share * mirror,
                                     (int)(hit - balls));
}

static unsigned long check(long group) {
    unsigned long hash = 0;
    unsigned off = 0;
    for (unsigned thread = 0; thread < BLOCK; thread++) {
        for (unsigned pixel = 0; pixel < PIXELS; pixel++) {
            unsigned number = scrambled((unsigned)group * 64 + pixel * 8191) + thread;
            struct vector to = {(double)seen_x(number), (double)seen_y(number), 1};
            to = moved((struct vector){0, 0, 0}, to, 1 / square_root(dot(to, to)));
            double right = followed((struct vector){0, (double)1.47f, -3}, to, 0, 1, NOTHING);
            double difference = (double)image[group][pixel][thread] - right;
            off += difference > 0.02 || difference < -0.02;
            hash = hash * 31 + (unsigned long)(long)(image[group][pixel][thread] * 256.0f);
        }
    }
    /* At the edges of balls, shadows and tiles the last digit decides. */
    if (off * 20 > BLOCK * PIXELS) {
        fail(PROGRAM, "group %ld: %u of %d pixels are wrong", group, off, BLOCK * PIXELS);
    }
    return hash;
}

RUN_GROUPS
