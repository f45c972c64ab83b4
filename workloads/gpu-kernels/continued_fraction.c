/* Continued fractions of a lane's ratios, with repeated terms counted and large ones ending it. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    for (u32 i = 0; i < 25; i++) {
        u32 a = in[i * 64 + lane] >> 8, b = (in[i * 64 + lane + 32] >> 14) + 1, terms = 0, last = 0;
        while (b != 0) {
            u32 q = a / b, r = a - q * b;
            a = b;
            b = r;
            if (q > 200)
                break;
            if (q == last) {
                s += 3;
            } else {
                mem[terms & 31] = q;
                last = q;
            }
            terms++;
        }
        s += terms;
    }
    return s * 16 + (mem[1] & 15);
}
