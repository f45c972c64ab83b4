/* A loop of filters: each may go on with the next turn, what is left does some work. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    for (u32 i = 0; i < 250; i++) {
        u32 r = in[(i * 17 + lane * 131) % IN_WORDS];
        if (r % 3 == 0)
            continue;
        s += r & 255;
        if ((r >> 8) % 5 == 1)
            continue;
        mem[r & 31] += s;
        if (mem[r & 31] & 4)
            continue;
        for (u32 k = r >> 30; k > 0; k--)
            s = s * 5 + mem[k];
    }
    return s;
}
