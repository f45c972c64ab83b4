/* Indirect calls: in each of twelve rounds a lane calls one of four functions through a pointer, lane i the function
 * (i + round) mod 4 in even rounds and the function of the round in odd ones. So the call's target differs between
 * lanes in every second round and is the same for all in the others.
 *
 * The compiler chooses the instructions, so no count is stated here; lines for one compiler's build go below these
 * two.
 * expect: region kernel
 * expect: lanes 4
 */
#define PROGRAM "indirect_calls"

#include "args.h"

enum { ROUNDS = 12, FUNCTIONS = 4 };

static AS_WRITTEN long doubled(long value) {
    return (2 * value) % 65521;
}

static AS_WRITTEN long moved(long value) {
    return value + 101;
}

static AS_WRITTEN long mirrored(long value) {
    return 70000 - value % 65521;
}

static AS_WRITTEN long digit_sum(long value) {
    long sum = 0;
    for (; value > 0; value /= 10) {
        sum += value % 10;
    }
    return sum;
}

static long (*volatile functions[FUNCTIONS])(long) = {doubled, moved, mirrored, digit_sum};

static AS_WRITTEN long kernel(long lane) {
    long value = lane + 7;
    for (long round = 0; round < ROUNDS; round++) {
        long chosen = round % 2 == 0 ? (lane + round) % FUNCTIONS : round % FUNCTIONS;
        value = functions[chosen](value);
    }
    return value;
}

static long expected(long lane) {
    long value = lane + 7;
    for (long round = 0; round < ROUNDS; round++) {
        long chosen = (round % 2 == 0 ? lane + round : round) % FUNCTIONS;
        if (chosen == 0) {
            value = (2 * value) % 65521;
        } else if (chosen == 1) {
            value += 101;
        } else if (chosen == 2) {
            value = 70000 - value % 65521;
        } else {
            char digits[32];
            int length = snprintf(digits, sizeof digits, "%ld", value);
            value = 0;
            for (int i = 0; i < length; i++) {
                value += digits[i] - '0';
            }
        }
    }
    return value;
}

#include "kernel.h"
