/* Queens on a small board, by bit masks with a stack of its own; the first row's queen is the lane's. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    const u32 size = 6, full = (1u << size) - 1;
    u32 solutions = 0, depth = 1, first = lane % size;
    (void)in;
    u32 *columns = mem, *left = mem + 16, *right = mem + 32, *open = mem + 48;
    columns[1] = 1u << first;
    left[1] = 1u << first << 1;
    right[1] = 1u << first >> 1;
    open[1] = full & ~(columns[1] | left[1] | right[1]) & (lane < 16 ? 0x3f : 0x1f);
    while (depth > 0) {
        if (open[depth] == 0) {
            depth--;
            continue;
        }
        u32 bit = open[depth] & -open[depth];
        open[depth] ^= bit;
        if (depth + 1 == size) {
            solutions++;
            continue;
        }
        columns[depth + 1] = columns[depth] | bit;
        left[depth + 1] = (left[depth] | bit) << 1;
        right[depth + 1] = (right[depth] | bit) >> 1;
        depth++;
        open[depth] = full & ~(columns[depth] | left[depth] | right[depth]);
    }
    return solutions;
}
