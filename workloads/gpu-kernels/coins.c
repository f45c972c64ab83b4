/* Ways to pay a sum with coins by backtracking with a stack of its own, cut where the rest can't be paid. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 target = 25 + (in[lane] & 15), ways = 0, nodes = 0;
    u32 level = 0, rest = target;
    mem[0] = 0;
    for (;;) {
        u32 coin = level == 0 ? 17 : level == 1 ? 11 : level == 2 ? 5 : 3;
        nodes++;
        if (nodes > 400)
            break;
        if (level == 4 || mem[level] * coin > rest) {
            if (level == 4 && rest == 0)
                ways++;
            if (level == 0)
                break;
            level--;
            coin = level == 0 ? 17 : level == 1 ? 11 : level == 2 ? 5 : 3;
            rest += mem[level] * coin;
            mem[level]++;
            continue;
        }
        if (level == 3 && (rest - mem[3] * 3) % 2 == 1 && mem[3] > 6) {
            mem[3]++;
            continue;
        }
        rest -= mem[level] * coin;
        level++;
        mem[level] = 0;
    }
    return ways * 1000 + nodes;
}
