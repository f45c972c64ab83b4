/* A histogram with uneven bins: the bin is found by comparisons, small values in a loop. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    for (u32 i = 0; i < 200; i++) {
        u32 v = in[(i * 32 + lane * 3) % IN_WORDS] >> (i & 15);
        u32 bin;
        if (v > 1u << 28) {
            bin = 40;
        } else if (v > 1u << 24) {
            bin = 30 + (v >> 24 & 7);
        } else {
            bin = 0;
            while (v > 15) {
                v >>= 2;
                bin++;
            }
        }
        mem[bin]++;
    }
    u32 s = 0;
    for (u32 i = 0; i < 41; i++)
        s = s * 5 + mem[i];
    return s;
}
