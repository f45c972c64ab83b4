/* Newton's iteration for a cube root until it converges, from a bad start; negative values are turned first. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    (void)mem;
    for (u32 i = 0; i < 25; i++) {
        float a = unit_float(in[i * 32 + lane]) * 2000.0f - 1000.0f, sign = 1.0f, x = 1.0f;
        u32 n = 0;
        if (a < 0.0f) {
            a = -a;
            sign = -1.0f;
        }
        if (a < 0.5f)
            continue;
        for (;;) {
            float next = (2.0f * x + a / (x * x)) / 3.0f, change = next - x;
            x = next;
            n++;
            if (change < 0.0f)
                change = -change;
            if (change < 0.0001f * x || n == 50)
                break;
        }
        s += n + (sign > 0.0f ? (u32)(x * 16.0f) : 7);
    }
    return s;
}
