/* Breadth-first search, a few steps: nodes on the frontier visit neighbours of which they have between 0 and 15. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 reached = 0;
    for (u32 node = 0; node < 8; node++)
        mem[in[lane * 8 + node] & 127] = 1;
    for (u32 level = 1; level < 5; level++)
        for (u32 node = 0; node < 128; node += 2) {
            if (mem[node] != level)
                continue;
            u32 degree = in[node + 256] & 15;
            for (u32 k = 0; k < degree; k++) {
                u32 to = in[node * 16 + k + 512] & 127;
                if (mem[to] == 0) {
                    mem[to] = level + 1;
                    reached++;
                }
            }
        }
    return reached;
}
