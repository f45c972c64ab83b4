/* Intervals in order of their starts, merged where they overlap; gaps are summed by size. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 count = 0, at = 0, s = 0;
    for (u32 i = 0; i < 120; i++) {
        u32 r = in[(i * 32 + lane) % IN_WORDS], from, to;
        at += r & 15;
        from = at;
        to = at + (r >> 4 & 31);
        if (count > 0 && from <= mem[2 * count - 1]) {
            if (to > mem[2 * count - 1])
                mem[2 * count - 1] = to;
            continue;
        }
        if (count > 0) {
            u32 gap = from - mem[2 * count - 1];
            if (gap > 8) {
                s += 100;
            } else if (gap > 4) {
                do
                    s += gap;
                while (gap-- > 4);
            } else {
                s++;
            }
        }
        mem[2 * count] = from;
        mem[2 * count + 1] = to;
        count++;
    }
    return s * 128 + count;
}
