/* The Mandelbrot set, a few points per lane: the escape test ends each lane's loop on its own. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    (void)in;
    for (u32 row = 0; row < 6; row++) {
        float cx = -2.0f + 3.0f * (float)lane / 32.0f, cy = -1.0f + (float)row * 0.3f, x = 0, y = 0;
        u32 n = 0;
        while (n < 200) {
            float xx = x * x, yy = y * y;
            if (xx + yy > 4.0f)
                break;
            y = 2.0f * x * y + cy;
            x = xx - yy + cx;
            n++;
        }
        mem[row] = n;
        s += n;
    }
    return s;
}
