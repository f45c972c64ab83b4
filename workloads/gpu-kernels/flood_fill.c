/* A flood fill with a stack of its own on a small map of walls. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 *stack = mem + 512, top = 0, filled = 0, start = (lane * 9 + 5) % 256;
    stack[top++] = start;
    while (top > 0) {
        u32 at = stack[--top], x = at & 15, y = at >> 4;
        if (mem[at])
            continue;
        mem[at] = 1;
        filled++;
        if (x > 0 && (in[at - 1] & 3) != 0 && !mem[at - 1])
            stack[top++] = at - 1;
        if (x < 15 && (in[at + 1] & 3) != 0 && !mem[at + 1])
            stack[top++] = at + 1;
        if (y > 0 && (in[at - 16] & 3) != 0 && !mem[at - 16])
            stack[top++] = at - 16;
        if (y < 15 && (in[at + 16] & 3) != 0 && !mem[at + 16])
            stack[top++] = at + 16;
        if (filled > 40 + (lane & 15))
            return filled * 256 + at;
    }
    return filled;
}
