/* Three nested loops; the innermost breaks, goes on with the middle one's next turn, or leaves all of them. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    (void)mem;
    for (u32 i = 0; i < 20; i++) {
        for (u32 j = 0; j < 8; j++) {
            for (u32 k = 0; k < 6; k++) {
                u32 r = in[(i * 61 + j * 7 + k + lane * 113) % IN_WORDS];
                if ((r & 15) == 0)
                    break;
                if ((r & 15) == 1)
                    goto next_middle;
                if ((r & 1023) == 2)
                    goto out;
                s += r >> 16;
            }
            s ^= j;
        next_middle:
            s += 3;
        }
    }
out:
    return s;
}
