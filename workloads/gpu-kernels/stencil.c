/* A stencil on a grid with cases at the boundary: corners, sides, and walls inside by the hash. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 side = 12;
    for (u32 i = 0; i < side * side; i++)
        mem[i] = in[(i + lane * 50) % IN_WORDS] & 0xffff;
    for (u32 turn = 0; turn < 3; turn++)
        for (u32 y = 0; y < side; y++)
            for (u32 x = 0; x < side; x++) {
                u32 at = y * side + x, sum = mem[at] * 2, n = 2;
                if ((in[(at * 5 + lane) % IN_WORDS] & 7) == 0)
                    continue;
                if (x > 0) {
                    sum += mem[at - 1];
                    n++;
                }
                if (x + 1 < side) {
                    sum += mem[at + 1];
                    n++;
                }
                if (y > 0) {
                    sum += mem[at - side];
                    n++;
                }
                if (y + 1 < side) {
                    sum += mem[at + side];
                    n++;
                }
                mem[at] = sum / n;
            }
    return mem[17] + mem[40] * 3 + mem[100];
}
