/* Many returns out of straight code and out of a loop; most lanes are gone after a while. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = in[lane];
    if ((s & 15) == 3)
        return 1;
    for (u32 i = 0; i < 60; i++) {
        u32 r = next_random(&s) >> 8;
        if ((r & 127) == 5)
            return i;
        mem[i] = r;
        if ((r & 256) && i > 20) {
            u32 t = 0;
            for (u32 k = 0; k < i; k++) {
                t += mem[k];
                if ((t & 1023) == 7)
                    return t;
            }
            s += t;
        }
        if (i > 30 && (r & 0x3f00) == 0x1100)
            return s;
    }
    return s ^ lane;
}
