/* Naive search of a pattern: nested loops, a break of the inner, `continue` of the outer, a return from within. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 found = 0;
    (void)mem;
    for (u32 at = 0; at < 300; at++) {
        u32 k;
        if ((in[at] & 3) != (lane & 3))
            continue;
        for (k = 1; k < 6; k++)
            if ((in[at + k] & 1) != ((lane >> k) & 1))
                break;
        if (k == 6) {
            found += at;
            if (found > 700)
                return found;
        }
    }
    return found;
}
