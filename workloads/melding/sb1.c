/* SB1: a diamond, whose arms do the same to numbers of their own. */
#define PROGRAM "sb1"

#include "synthetic.h"

#define one(x, y)                                                                                                      \
    x = x * 1103515245u ^ s->noise[y & 63], y = (y >> 3) + x;                                                          \
    x ^= s->noise[x >> 7 & 63], y = y * 69069u + 1;
#define other(x, y)                                                                                                    \
    x = x * 1103515245u ^ s->noise[y & 63], y = (y >> 3) + x;                                                          \
    x ^= s->noise[x >> 7 & 63], y = y * 69069u + 1;

#define DIAMOND(arm, x, y) arm(x, y)

KERNEL(DIAMOND)
RUN_GROUPS
