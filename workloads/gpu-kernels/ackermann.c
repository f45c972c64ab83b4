/* Ackermann's function of small arguments with a stack of its own. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    for (u32 round = 0; round < 4; round++) {
        u32 top = 0, n = in[lane * 4 + round] & 3, m = in[lane * 4 + round + 128] % 3;
        mem[top++] = m;
        while (top > 0) {
            m = mem[--top];
            if (m == 0) {
                n++;
            } else if (n == 0) {
                n = 1;
                mem[top++] = m - 1;
            } else {
                mem[top++] = m - 1;
                mem[top++] = m;
                n--;
            }
        }
        s = s * 7 + n;
    }
    return s;
}
