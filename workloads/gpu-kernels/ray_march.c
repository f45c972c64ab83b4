/* Marching along a ray until it hits one of four spheres, is far away, or has taken too many steps. */
#include "kernel.h"

static inline float root(float x)
{
    float r = x > 1.0f ? x : 1.0f;
    for (u32 i = 0; i < 6; i++)
        r = 0.5f * (r + x / r);
    return r;
}

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    (void)mem;
    for (u32 ray = 0; ray < 6; ray++) {
        float dx = 0.5f - unit_float(in[lane * 8 + ray]), dy = 0.5f - unit_float(in[lane * 8 + ray + 512]), t = 0.0f;
        u32 step = 0;
        for (; step < 40; step++) {
            float x = dx * t, y = dy * t, z = t, least = 1000.0f;
            for (u32 k = 0; k < 4; k++) {
                float cx = (float)k - 1.5f, cz = 4.0f + (float)(k & 1);
                float distance = root((x - cx) * (x - cx) + y * y + (z - cz) * (z - cz)) - 0.7f;
                if (distance < least)
                    least = distance;
            }
            if (least < 0.01f) {
                s += 1000;
                break;
            }
            if (t > 9.0f)
                break;
            t += least;
        }
        s += step;
    }
    return s;
}
