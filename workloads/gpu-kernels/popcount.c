/* Bits counted one by one, and the places of the lowest ones, by loops whose trips are the bits. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    (void)mem;
    for (u32 i = 0; i < 50; i++) {
        u32 v = in[i * 32 + lane], other = in[i * 32 + lane + 1500];
        if (i & 1)
            v &= other;
        if (i & 2)
            v &= v >> 3;
        while (v) {
            v &= v - 1;
            s++;
            if ((s & 63) == 17)
                s += other & 15;
        }
        u32 place = 0;
        while (place < 32 && !(other >> place & 1))
            place++;
        s += place;
    }
    return s;
}
