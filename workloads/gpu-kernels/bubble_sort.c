/* Bubble sort of almost sorted words: it ends after a pass without a swap, and each pass at the last swap's place. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 count = 32, s = 0, passes = 0;
    for (u32 i = 0; i < count; i++) {
        u32 r = in[i * 32 + lane];
        mem[i] = i * 64 + ((r & 7) == 0 ? r >> 23 : r >> 27);
    }
    u32 end = count;
    while (end > 1) {
        u32 last = 0;
        for (u32 i = 1; i < end; i++) {
            if (mem[i - 1] > mem[i]) {
                u32 t = mem[i];
                mem[i] = mem[i - 1];
                mem[i - 1] = t;
                last = i;
            }
        }
        end = last;
        passes++;
    }
    for (u32 i = 0; i < count; i++)
        s = s * 31 + mem[i];
    return s + passes;
}
