/* Binary search with an early break: the halving is an if-else of one instruction each. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0, z = in[lane];
    (void)mem;
    for (u32 i = 0; i < 60; i++) {
        u32 key = next_random(&z) >> 12, lo = 0, hi = 1u << 20, n = 0;
        while (lo < hi) {
            u32 middle = (lo + hi) / 2;
            n++;
            if (middle == key)
                break;
            if (middle < key)
                lo = middle + 1;
            else
                hi = middle;
        }
        s += n + lo;
    }
    return s;
}
