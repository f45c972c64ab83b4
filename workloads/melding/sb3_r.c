/* SB3-R: two if-thens in each arm, those of one arm doing other things than those of the other. */
#define PROGRAM "sb3_r"

#include "synthetic.h"

#define one(x, y)                                                                                                      \
    x = x * 1103515245u ^ s->noise[y & 63], y = (y >> 3) + x;                                                          \
    x ^= s->noise[x >> 7 & 63], y = y * 69069u + 1;
#define other(x, y)                                                                                                    \
    x = x * 22695477u ^ s->noise[y & 63], y = (y >> 5) + x;                                                            \
    x = (x ^ y << 2) - s->noise[x >> 7 & 63] % 1000u, y = y * 69069u + 1;

#define TWO_IFS(arm, x, y)                                                                                             \
    if (x > y) {                                                                                                       \
        arm(x, y)                                                                                                      \
    }                                                                                                                  \
    y += 0x9e3779b9u;                                                                                                  \
    if ((x ^ y) & 4) {                                                                                                 \
        arm(y, x)                                                                                                      \
    }

KERNEL(TWO_IFS)
RUN_GROUPS
