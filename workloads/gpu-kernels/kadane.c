/* The largest sum of a part of a lane's numbers, with its place: two ifs per turn. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    int best = 0, sum = 0;
    u32 from = 0, best_from = 0, best_to = 0;
    for (u32 i = 0; i < 400; i++) {
        int v = (int)(in[(i * 9 + lane * 77) % IN_WORDS] >> 24) - 127;
        sum += v;
        if (sum < 0) {
            mem[from & 63]++;
            sum = 0;
            from = i + 1;
        } else if (sum > best) {
            best = sum;
            best_from = from;
            best_to = i;
            mem[64] = i;
        }
    }
    return (u32)best * 31 + best_from * 7 + best_to + mem[5];
}
