/* Two nested ifs that jump into one loop from both sides, and a common tail: no ifs and loops express it. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0, z = in[lane];
    (void)mem;
    for (u32 i = 0; i < 150; i++) {
        u32 r = next_random(&z);
        if (r >> 30 & 1) {
            if (r >> 29 & 1)
                goto shared;
            s += i;
        } else {
            s ^= i;
            if (r >> 28 & 1)
                goto shared;
            s -= 3;
        }
        s += 5;
        continue;
    shared:
        for (u32 k = 0; k < 12; k++)
            s = s * 3 + k;
    }
    return s;
}
