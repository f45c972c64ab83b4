/* Recursion whose depth depends on the thread: lane i goes 2 * i + 1 calls (up to 31) deep and comes back.
 *
 * The lanes that are deeper have the smaller stack pointer and the higher call level, so the models that look at
 * either run them first and find the others at the same return; by pc alone, returning lanes run ahead of descending
 * ones or not, as the layout has it.
 *
 * The compiler chooses the instructions, so no count is stated here; lines for one compiler's build go below these
 * two.
 * expect: region kernel
 * expect: lanes 4
 */
#define PROGRAM "recursion"

#include "args.h"

static AS_WRITTEN long descend(long depth) {
    if (depth == 0) {
        return 1;
    }
    long below = descend(depth - 1);
    OPAQUE(below);
    return 3 * below + depth;
}

static AS_WRITTEN long kernel(long lane) {
    return descend((2 * lane) % 32 + 1) & 0xffffffff;
}

static long expected(long lane) {
    unsigned long value = 1;
    for (long depth = 1; depth <= (2 * lane) % 32 + 1; depth++) {
        value = 3 * value + (unsigned long)depth;
    }
    return (long)(value & 0xffffffff);
}

#include "kernel.h"
