/* Points in a disc, by rejection: each lane draws until one is inside, then walks from it. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 z = in[lane], s = 0;
    (void)mem;
    for (u32 i = 0; i < 60; i++) {
        float x, y, r;
        do {
            x = 2.0f * unit_float(next_random(&z)) - 1.0f;
            y = 2.0f * unit_float(next_random(&z)) - 1.0f;
            r = x * x + y * y;
            s++;
        } while (r > 0.6f || r < 0.05f);
        if (x > 0.0f && y > x)
            s += 2;
        for (u32 k = 0; k < 10 && x * x + y * y < 1.0f; k++) {
            x += 0.3f * unit_float(next_random(&z));
            y -= 0.1f;
            s += k;
        }
    }
    return s;
}
