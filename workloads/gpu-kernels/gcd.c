/* Euclid by subtraction and halving: a loop with a chain of if-else-if in it. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    (void)mem;
    for (u32 i = 0; i < 16; i++) {
        u32 a = (in[i * 64 + lane] >> 12) + 1, b = (in[i * 64 + lane + 32] >> 12) + 1, shift = 0;
        while (a != b) {
            if (!(a & 1) && !(b & 1)) {
                a >>= 1;
                b >>= 1;
                shift++;
            } else if (!(a & 1)) {
                a >>= 1;
            } else if (!(b & 1)) {
                b >>= 1;
            } else if (a > b) {
                a = (a - b) >> 1;
            } else {
                b = (b - a) >> 1;
            }
        }
        s += a << shift;
    }
    return s;
}
