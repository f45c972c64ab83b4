/* Bisection of a polynomial in an interval that is widened first until the signs differ. */
#include "kernel.h"

static inline float value(float x, float a, float b)
{
    return (x * x - a) * x - b;
}

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    (void)mem;
    for (u32 i = 0; i < 15; i++) {
        float a = 4.0f * unit_float(in[i * 64 + lane]), b = 20.0f * unit_float(in[i * 64 + lane + 32]) - 10.0f;
        float low = -0.5f, high = 0.5f;
        u32 widened = 0, n = 0;
        while (value(low, a, b) > 0.0f || value(high, a, b) < 0.0f) {
            low *= 1.7f;
            high *= 1.7f;
            if (++widened > 12)
                break;
        }
        while (high - low > 0.001f) {
            float middle = 0.5f * (low + high), v = value(middle, a, b);
            if (v == 0.0f)
                break;
            if (v < 0.0f)
                low = middle;
            else
                high = middle;
            n++;
        }
        s += n * 3 + widened;
    }
    return s;
}
