/* An American option on a binomial tree: at each node either exercised or held. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    float price = 80.0f + 40.0f * unit_float(in[lane]), strike = 100.0f, up = 1.03f, values[32];
    u32 steps = 16 + (in[lane + 32] & 7), exercised = 0;
    float at = price;
    for (u32 i = 0; i < steps; i++)
        at /= up;
    for (u32 i = 0; i <= steps; i++) {
        values[i] = strike > at ? strike - at : 0.0f;
        at *= up * up;
    }
    for (u32 step = steps; step > 0; step--) {
        float node = price;
        for (u32 i = 1; i < step; i++)
            node /= up;
        for (u32 i = 0; i < step; i++) {
            float held = 0.995f * (0.49f * values[i + 1] + 0.51f * values[i]), now = strike - node;
            if (now > held) {
                held = now;
                exercised++;
                mem[i] = step;
            }
            values[i] = held;
            node *= up * up;
        }
    }
    return (u32)(values[0] * 1000.0f) + exercised + mem[3];
}
