/* The compare-and-swap steps of a bitonic network over a lane's words. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    for (u32 i = 0; i < 32; i++)
        mem[i] = in[i * 32 + lane] >> 8;
    for (u32 size = 2; size <= 32; size *= 2)
        for (u32 step = size / 2; step > 0; step /= 2)
            for (u32 i = 0; i < 32; i++) {
                u32 other = i ^ step;
                if (other > i) {
                    u32 a = mem[i], b = mem[other];
                    if ((i & size) == 0 ? a > b : a < b) {
                        mem[i] = b;
                        mem[other] = a;
                    }
                }
            }
    u32 s = 0;
    for (u32 i = 0; i < 32; i++)
        s = s * 31 + mem[i];
    return s;
}
