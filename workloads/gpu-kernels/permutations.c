/* The next permutations in order, and how many of them have a point that stays. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 fixed = 0;
    for (u32 i = 0; i < 7; i++)
        mem[i] = (i + lane) % 7;
    for (u32 turn = 0; turn < 60 + (in[lane] & 31); turn++) {
        int i = 5, j = 6;
        while (i >= 0 && mem[i] >= mem[i + 1])
            i--;
        if (i < 0) {
            for (u32 k = 0; k < 7; k++)
                mem[k] = k;
            continue;
        }
        while (mem[j] <= mem[i])
            j--;
        u32 t = mem[i];
        mem[i] = mem[j];
        mem[j] = t;
        for (int a = i + 1, b = 6; a < b; a++, b--) {
            t = mem[a];
            mem[a] = mem[b];
            mem[b] = t;
        }
        for (u32 k = 0; k < 7; k++)
            if (mem[k] == k) {
                fixed++;
                break;
            }
    }
    return fixed * 8 + mem[2];
}
