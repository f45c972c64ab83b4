/* Numbers below a bound from a generator, by rejection of what would bias them; the bound changes. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 z = in[lane] | 1, s = 0;
    for (u32 i = 0; i < 120; i++) {
        u32 bound = (in[i * 32 + lane] & 0xff) + 1, mask = bound, v;
        while (mask & (mask + 1))
            mask |= mask >> 1;
        do {
            z ^= z << 13;
            z ^= z >> 17;
            z ^= z << 5;
            v = z & mask;
        } while (v >= bound);
        s += v;
        mem[v & 15] ^= s;
    }
    return s + mem[3];
}
