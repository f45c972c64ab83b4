/* Insertion sort of a lane's own words: the inner loop has two reasons to end. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    for (u32 i = 0; i < 40; i++) {
        u32 v = in[(i * 32 + lane) % IN_WORDS] >> 20, j = i;
        while (j > 0 && mem[j - 1] > v) {
            mem[j] = mem[j - 1];
            j--;
        }
        mem[j] = v;
    }
    u32 s = 0;
    for (u32 i = 0; i < 40; i++)
        s = s * 31 + mem[i];
    return s;
}
