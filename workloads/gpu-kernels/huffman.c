/* Decoding of a prefix code bit by bit along a tree: common symbols are short. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 bits = in[lane * 32], left = 32, word = lane * 32, s = 0;
    for (u32 symbol = 0; symbol < 100; symbol++) {
        u32 node = 1;
        while (node < 16) {
            if (left == 0) {
                word++;
                bits = in[word % IN_WORDS];
                left = 32;
            }
            node = node * 2 + (bits & 1);
            bits >>= 1;
            left--;
            if (node == 2 || node == 7)
                break;
        }
        if (node == 2)
            s++;
        else if (node == 7)
            s = s * 3;
        else
            mem[node & 31]++;
    }
    return s + mem[17] * 5;
}
