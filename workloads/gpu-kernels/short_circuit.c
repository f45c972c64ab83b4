/* Conditions of && and || whose parts read memory, so that they stay branches. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    for (u32 i = 0; i < 150; i++) {
        u32 r = in[(i * 29 + lane * 67) % IN_WORDS];
        if ((r & 3) == 0 || (in[r % IN_WORDS] & 7) == 1 || (in[(r >> 12) % IN_WORDS] & 15) == 2) {
            mem[i & 63] = r;
            s += r >> 8;
        }
        if ((r & 16) && (in[(r >> 5) % IN_WORDS] & 1) && ((r & 64) || (mem[r & 63] & 1)))
            s = s * 7 + mem[(r >> 9) & 63];
        s++;
    }
    return s;
}
