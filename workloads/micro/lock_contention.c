/* Every lane takes the same mutex eight times and moves money between two accounts under it; lane i works i + 1 steps
 * before each time, so that the lanes reach the lock at different moments.
 *
 * In lockstep one lane at a time may be inside, and the others wait: the price of the lock. A model that runs the
 * waiting lanes until they get it would never end.
 *
 * The compiler chooses the instructions, so no count is stated here; lines for one compiler's build go below these
 * two.
 * expect: region kernel
 * expect: lanes 4
 */
#define PROGRAM "lock_contention"

#include <pthread.h>

#include "args.h"

enum { ROUNDS = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long from = 1000000;
static long to;
static int inside;
static int intruders;

static AS_WRITTEN long kernel(long lane) {
    long moved = 0;
    for (long round = 0; round < ROUNDS; round++) {
        long amount = round + 1;
        for (long step = 0; step <= lane % 16; step++) {
            amount = (amount * 3 + step) % 17 + 1;
            OPAQUE(amount);
        }
        pthread_mutex_lock(&lock);
        intruders += inside;
        inside = 1;
        from -= amount;
        to += amount;
        inside = 0;
        pthread_mutex_unlock(&lock);
        moved += amount;
    }
    return moved;
}

static long alone(long lane) {
    long moved = 0;
    for (long round = 0; round < ROUNDS; round++) {
        long amount = round + 1;
        for (long step = 0; step <= lane % 16; step++) {
            amount = (3 * amount + step) % 17 + 1;
        }
        moved += amount;
    }
    return moved;
}

/* What the lane moves when it is alone; a number that no lane computes when the lock let two lanes in. */
static long expected(long lane) {
    return from + to == 1000000 && intruders == 0 ? alone(lane) : -1;
}

#include "kernel.h"
