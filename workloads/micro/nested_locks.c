/* Every lane takes a mutex of its row (two rows, even and odd lanes) eight times, and inside of that the mutex of the
 * total, which all lanes share; odd amounts take a way of their own between the two.
 *
 * In lockstep a lane of each row may be inside of the outer section, and one lane of them inside of the inner one. A model
 * that runs the waiting lanes until they get a lock would never end. Where lanes take turns, those of different rows run side by
 * side up to the inner lock.
 *
 * The compiler chooses the instructions, so no count is stated here; lines for one compiler's build go below these
 * two.
 * expect: region kernel
 * expect: lanes 4
 */
#define PROGRAM "nested_locks"

#include <pthread.h>

#include "args.h"

enum { ROUNDS = 8, ROWS = 2 };

static pthread_mutex_t row_lock[ROWS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t total_lock = PTHREAD_MUTEX_INITIALIZER;
static long rows[ROWS];
static long total;

static AS_WRITTEN long kernel(long lane) {
    long moved = 0;
    for (long round = 0; round < ROUNDS; round++) {
        long amount = (lane * 5 + round * 3) % 11 + 1;
        OPAQUE(amount);
        pthread_mutex_lock(&row_lock[lane % ROWS]);
        rows[lane % ROWS] += amount;
        if (amount % 2) {
            amount = amount * 2 + round;
            OPAQUE(amount);
            rows[lane % ROWS] += amount;
        }
        pthread_mutex_lock(&total_lock);
        total += amount;
        pthread_mutex_unlock(&total_lock);
        pthread_mutex_unlock(&row_lock[lane % ROWS]);
        moved += amount;
    }
    return moved;
}

static long alone(long lane) {
    long moved = 0;
    for (long round = 0; round < ROUNDS; round++) {
        long amount = (5 * lane + 3 * round) % 11 + 1;
        moved += amount % 2 ? 2 * amount + round : amount;
    }
    return moved;
}

/* What the lane moves when it is alone; a number that no lane computes when less arrived than this lane alone has moved. */
static long expected(long lane) {
    return total >= alone(lane) ? alone(lane) : -1;
}

#include "kernel.h"
