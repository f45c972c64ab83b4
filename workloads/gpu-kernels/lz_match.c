/* The longest earlier match of each position in a window, cut short when it is long enough. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    for (u32 i = 0; i < 64; i++)
        mem[i] = in[lane * 64 + i] & 1;
    for (u32 at = 16; at < 56; at++) {
        u32 best = 0, from = 0;
        for (u32 back = 1; back <= 16; back++) {
            u32 length = 0;
            while (length < 8 && mem[at + length] == mem[at + length - back])
                length++;
            if (length > best) {
                best = length;
                from = back;
                if (best == 8)
                    break;
            }
        }
        if (best >= 3) {
            s = s * 3 + from;
            at += best - 1;
        } else {
            s += mem[at];
        }
    }
    return s;
}
