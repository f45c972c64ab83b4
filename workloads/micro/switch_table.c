/* A switch over eight cases, compiled to a jump table: one indirect jump with up to eight targets. Each lane
 * interprets the same sixteen operations in turn, but starts at an operation of its own, so that the targets differ
 * from lane to lane in most rounds and all lanes meet at the end of each.
 *
 * The compiler chooses the instructions, so no count is stated here; lines for one compiler's build go below these
 * two.
 * expect: region kernel
 * expect: lanes 4
 */
#define PROGRAM "switch_table"

#include <limits.h>

#include "args.h"

enum { OPERATIONS = 16 };

static const unsigned char program[OPERATIONS] = {0, 3, 1, 7, 2, 2, 5, 6, 4, 0, 7, 1, 6, 3, 5, 4};

static AS_WRITTEN long kernel(long lane) {
    unsigned long value = (unsigned long)lane + 1;
    for (long round = 0; round < OPERATIONS; round++) {
        switch (program[(lane + round) % OPERATIONS]) {
        case 0:
            value += 17;
            break;
        case 1:
            value *= 5;
            OPAQUE(value);
            break;
        case 2:
            value ^= value >> 3;
            break;
        case 3:
            value -= 4;
            OPAQUE(value);
            value += value << 2;
            break;
        case 4:
            value = ~value;
            break;
        case 5:
            value = (value << 7) | (value >> 57);
            break;
        case 6:
            value += (unsigned long)round;
            OPAQUE(value);
            value ^= 0x55;
            break;
        default:
            value *= value | 1;
            break;
        }
    }
    return (long)(value % 1000003);
}

/* The same operations, each as a formula picked by comparing, without a switch. */
static unsigned long applied(int operation, unsigned long value, unsigned long round) {
    return operation == 0   ? value + 17
           : operation == 1 ? 4 * value + value
           : operation == 2 ? value ^ (value / 8)
           : operation == 3 ? 5 * (value - 4)
           : operation == 4 ? ULONG_MAX - value
           : operation == 5 ? value * 128 + value / (1UL << 57)
           : operation == 6 ? (value + round) ^ 0x55
                            : value * (value | 1);
}

static long expected(long lane) {
    unsigned long value = (unsigned long)lane + 1;
    for (long round = 0; round < OPERATIONS; round++) {
        value = applied(program[(lane + round) % OPERATIONS], value, (unsigned long)round);
    }
    return (long)(value % 1000003);
}

#include "kernel.h"
