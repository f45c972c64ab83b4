/* A Julia set with a trap: an orbit ends by escape, in the trap, or after too many turns. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    for (u32 i = 0; i < 8; i++) {
        float x = 3.0f * unit_float(in[i * 32 + lane]) - 1.5f, y = 3.0f * unit_float(in[i * 32 + lane + 999]) - 1.5f;
        u32 n = 0, ended = 0;
        do {
            float xx = x * x - y * y - 0.4f;
            y = 2.0f * x * y + 0.6f;
            x = xx;
            if (x * x + y * y > 4.0f) {
                ended = 1;
                break;
            }
            if (x > -0.02f && x < 0.02f) {
                ended = 2;
                break;
            }
        } while (++n < 120);
        if (ended == 2)
            mem[n & 15] += n;
        else if (ended == 1)
            s += n;
        else
            s += 1000;
    }
    return s + mem[2] + mem[3] * 3;
}
