/* Levenshtein's distance of two short words, by rows, with a minimum of three as ifs. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 la = 8 + (in[lane] & 7), lb = 8 + (in[lane] >> 3 & 7);
    for (u32 j = 0; j <= lb; j++)
        mem[j] = j;
    for (u32 i = 1; i <= la; i++) {
        u32 diagonal = mem[0];
        mem[0] = i;
        for (u32 j = 1; j <= lb; j++) {
            u32 above = mem[j], cost = diagonal;
            if ((in[lane * 32 + i] & 3) != (in[lane * 32 + j + 1024] & 3)) {
                if (above < cost)
                    cost = above;
                if (mem[j - 1] < cost)
                    cost = mem[j - 1];
                cost++;
            }
            diagonal = above;
            mem[j] = cost;
        }
    }
    return mem[lb];
}
