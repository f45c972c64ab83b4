/* Assignment to the nearest of five centres, with an early end of the distance's sum. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 moved = 0;
    for (u32 point = 0; point < 40; point++) {
        float best = 1e9f;
        u32 nearest = 0;
        for (u32 centre = 0; centre < 5; centre++) {
            float distance = 0.0f;
            for (u32 d = 0; d < 6; d++) {
                float a = unit_float(in[(point * 6 + d + lane * 240) % IN_WORDS]);
                float b = unit_float(in[centre * 6 + d]);
                distance += (a - b) * (a - b);
                if (distance > best)
                    break;
            }
            if (distance < best) {
                best = distance;
                nearest = centre;
            }
        }
        if (nearest != mem[point % 20]) {
            mem[point % 20] = nearest;
            moved++;
        }
    }
    return moved * 8 + mem[3];
}
