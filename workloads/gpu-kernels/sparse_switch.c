/* A switch over few values far apart, one of them shared by two arms that then part again. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = lane;
    for (u32 i = 0; i < 200; i++) {
        u32 r = in[(i + lane * 127) % IN_WORDS] & 0x1f;
        switch (r * r * 37) {
        case 0:
            s += 1;
            break;
        case 37:
        case 148:
            s = s * 3 + 1;
            mem[s & 15]++;
            break;
        case 333:
            s ^= mem[i & 15];
            break;
        case 2368:
            s -= i;
            while (s & 8)
                s = (s >> 1) + 1;
            break;
        case 925:
            s = ~s;
            break;
        case 35557:
            return s;
        default:
            s += r;
        }
    }
    return s;
}
