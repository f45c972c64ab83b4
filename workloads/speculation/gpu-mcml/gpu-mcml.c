/* Light in layers of tissue, after GPU-MCML: a task is a photon packet that enters the skin (the prolog) and hops,
 * drops a part of its weight and turns (the inner loop), until it leaves by the surface or the bottom, or is so light
 * that roulette ends it. One packet is reflected after three steps, another goes on for hundreds. Predicted: the body
 * of the inner loop.
 *
 * Places that look alike and do not pay: the end of a layer, where it is reflected or refracted; total reflection; the
 * roulette; a turn straight on.
 *
 * Weights are whole numbers, whose sums do not depend on the order. The check: what was sent and won by lot is what
 * was left in layers, went out, or was lost by lot, to the last bit; and packets are absorbed and turn as often as
 * their paths in each layer let expect. */
#define PROGRAM "gpu-mcml"
#define TASKS 256

#include "../../include/numbers.h"
#include "../../include/tasks.h"

enum { LAYERS = 4, WEIGHT = 1 << 24, SMALL = WEIGHT / 256, CHANCE = 10 };

/* Paths are counted in parts of a millimetre. */
#define PARTS 1048576.0

/* Absorption and scattering per millimetre, how much goes on forwards, the index of refraction, and the bottom. */
static const struct layer {
    double absorbs, scatters, forward, index, bottom;
} layers[LAYERS] = {
    {0.3, 8, 0.8, 1.5, 0.1}, {0.4, 14, 0.8, 1.34, 0.5}, {0.5, 20, 0.85, 1.4, 1.0}, {0.3, 10, 0.75, 1.44, 4.0}};

static struct {
    unsigned long left, path, turns;
} tallies[LAYERS];
static struct packet_end {
    unsigned long up, down, won, lost;
} *ends;

static void prepare(void) {
    ends = zeroed(PROGRAM, (size_t)tasks, sizeof *ends);
}

/* How much of the light is reflected where the index changes (Fresnel); with the cosine behind it. */
static inline __attribute__((always_inline)) double reflected(double from, double to, double cosine, double *behind) {
    double ratio = from / to, square = 1 - ratio * ratio * (1 - cosine * cosine);
    if (square <= 0) {
        *behind = 0;
        return 1;
    }
    double other = sqrt(square);
    double across = (from * cosine - to * other) / (from * cosine + to * other);
    double along = (from * other - to * cosine) / (from * other + to * cosine);
    *behind = other;
    return 0.5 * (across * across + along * along);
}

static AS_WRITTEN void kernel(long first) {
    LOCKSTEP_PREDICT(hop);
    for (long packet = first; packet < tasks; packet += threads) {
        uint64_t seed = seed_of((uint64_t)packet);
        double z = 0, along_x = 0, along_y = 0, along_z = 1, to_turn = 0;
        unsigned long weight = WEIGHT;
        struct packet_end end = {0};
        int layer = 0;
        while (weight > 0) {
            LOCKSTEP_RECONVERGE(hop);
            /* Hop: to where it turns, or to the end of the layer. */
            double absorbs = layers[layer].absorbs, scatters = layers[layer].scatters, rate = absorbs + scatters;
            double fresh = -logarithm(drawn(&seed) + 0x1p-33);
            to_turn = to_turn > 0 ? to_turn : fresh;
            double top = layer > 0 ? layers[layer - 1].bottom : 0, bottom = layers[layer].bottom;
            double room = (along_z > 0 ? bottom - z : z - top) / (fabs(along_z) + 1e-9), step = to_turn / rate;
            int is_end = room < step;
            step = is_end ? room : step;
            step = step > 0 ? step : 0;
            z += along_z * step;
            __atomic_fetch_add(&tallies[layer].path, (unsigned long)(step * PARTS), __ATOMIC_RELAXED);
            if (is_end) {
                to_turn -= step * rate;
                int next = along_z > 0 ? layer + 1 : layer - 1;
                double index = next >= 0 && next < LAYERS ? layers[next].index : 1, cosine = fabs(along_z), behind;
                double share = reflected(layers[layer].index, index, cosine, &behind);
                z = along_z > 0 ? bottom : top;
                if (drawn(&seed) < share) {
                    along_z = -along_z;
                } else if (next < 0) {
                    end.up += weight;
                    weight = 0;
                } else if (next == LAYERS) {
                    end.down += weight;
                    weight = 0;
                } else {
                    double bent = layers[layer].index / index;
                    along_x *= bent;
                    along_y *= bent;
                    along_z = along_z > 0 ? behind : -behind;
                    layer = next;
                }
            } else {
                to_turn = 0;
                /* Drop. */
                unsigned long left = (unsigned long)((double)weight * (absorbs / rate));
                weight -= left;
                __atomic_fetch_add(&tallies[layer].left, left, __ATOMIC_RELAXED);
                __atomic_fetch_add(&tallies[layer].turns, 1, __ATOMIC_RELAXED);
                /* Turn (Henyey and Greenstein), in Duff et al.'s basis. */
                double forward = layers[layer].forward;
                double part = (1 - forward * forward) / (1 - forward + 2 * forward * drawn(&seed)), turn = drawn(&seed);
                double cosine = (1 + forward * forward - part * part) / (2 * forward), square = 1 - cosine * cosine;
                double sine = sqrt(square > 0 ? square : 0);
                double a = sine * cosine_of_turn(turn), b = sine * sine_of_turn(turn);
                double sign = __builtin_copysign(1.0, along_z), c = -1 / (sign + along_z), d = along_x * along_y * c;
                double x = cosine * along_x + a * (1 + sign * along_x * along_x * c) + b * d;
                double y = cosine * along_y + a * sign * d + b * (sign + along_y * along_y * c);
                along_z = cosine * along_z - a * sign * along_x - b * along_y;
                double length = 1 / sqrt(x * x + y * y + along_z * along_z);
                along_x = x * length;
                along_y = y * length;
                along_z *= length;
                if (weight < SMALL) {
                    if (drawn(&seed) * CHANCE < 1) {
                        end.won += weight * (CHANCE - 1);
                        weight *= CHANCE;
                    } else {
                        end.lost += weight;
                        weight = 0;
                    }
                }
            }
            END_OF_TURN(weight);
        }
        ends[packet] = end;
    }
}

static void check(void) {
    unsigned long up = 0, down = 0, won = 0, lost = 0, left = 0;
    for (long packet = 0; packet < tasks; packet++) {
        up += ends[packet].up;
        down += ends[packet].down;
        won += ends[packet].won;
        lost += ends[packet].lost;
    }
    for (int layer = 0; layer < LAYERS; layer++) {
        double expected = (layers[layer].absorbs + layers[layer].scatters) * (double)tallies[layer].path / PARTS;
        if (fabs((double)tallies[layer].turns - expected) > 6 * sqrt(expected) + 6) {
            fail(PROGRAM, "packets turn %lu times in layer %d, where about %.0f belong", tallies[layer].turns, layer,
                 expected);
        }
        left += tallies[layer].left;
    }
    unsigned long in = (unsigned long)tasks * WEIGHT + won, gone = up + down + lost + left;
    if (in != gone) {
        fail(PROGRAM, "%lu came in, and %lu left or stayed", in, gone);
    }
    printf("%ld packets: %lu reflected, %lu went through, %lu stayed\n", tasks, up, down, left);
}

RUN_TASKS
