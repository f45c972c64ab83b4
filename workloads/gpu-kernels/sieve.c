/* A sieve over a segment that is the lane's own: the crossing-out of each prime begins elsewhere. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 start = 100 + lane * 150 + (in[lane] & 31), count = 0;
    for (u32 p = 2; p * p < start + 150; p++) {
        u32 composite = 0;
        for (u32 d = 2; d * d <= p; d++)
            if (p % d == 0) {
                composite = 1;
                break;
            }
        if (composite)
            continue;
        for (u32 m = (start + p - 1) / p * p; m < start + 150; m += p)
            mem[m - start] = 1;
    }
    for (u32 i = 0; i < 150; i++)
        if (!mem[i])
            count += i;
    return count;
}
