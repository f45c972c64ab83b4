/* Sums of rows of a sparse matrix: the rows' lengths differ, most are short and some are long. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    (void)mem;
    for (u32 row = lane; row < 32 * 12; row += 32) {
        u32 length = in[row] >> 28;
        if (length > 12)
            length *= 6;
        for (u32 k = 0; k < length; k++)
            s += in[(in[(row + k) % IN_WORDS] >> 3) % IN_WORDS] & 0xffff;
    }
    return s;
}
