/* Blocks for programs about control flow: `BLOCK(n)` makes a function bn, and `RUN(n, path)` calls it, which puts the digit
 * n behind `path`, and is true. A lane's path is then the blocks that it ran, and a replay tells how often a block is
 * issued by the first instruction of its function. */
#ifndef WORKLOADS_BLOCKS_H
#define WORKLOADS_BLOCKS_H

#include "args.h"

#define BLOCK(number)                                                                                                  \
    static AS_WRITTEN long b##number(long path) {                                                                      \
        OPAQUE(path);                                                                                                  \
        return path * 10 + number;                                                                                     \
    }
#define RUN(number, path) run(b##number, &(path))

static inline __attribute__((always_inline)) int run(long (*block)(long), long *path) {
    *path = block(*path);
    return 1;
}

#endif
