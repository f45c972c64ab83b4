/* A binary search tree in arrays: keys are inserted, then looked up with a walk to the parent's other side. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 *keys = mem, *low = mem + 64, *high = mem + 128, nodes = 1, s = 0;
    keys[0] = 1u << 19;
    for (u32 i = 0; i < 40; i++) {
        u32 key = in[i * 32 + lane] >> 12, at = 0;
        for (;;) {
            if (key == keys[at])
                break;
            u32 *next = key < keys[at] ? &low[at] : &high[at];
            if (*next == 0) {
                *next = nodes;
                keys[nodes] = key;
                nodes++;
                break;
            }
            at = *next;
        }
    }
    for (u32 i = 0; i < 40; i++) {
        u32 key = in[i * 16 + lane + 2000] >> 12, at = 0, depth = 0;
        do {
            depth++;
            at = key < keys[at] ? low[at] : high[at];
        } while (at != 0);
        s += depth * (i + 1);
    }
    return s;
}
