/* The knapsack problem by rows of a table; items too heavy are left out, and the items taken are traced back. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 capacity = 20 + (in[lane] & 15), s = 0;
    for (u32 item = 1; item <= 10; item++) {
        u32 weight = 2 + (in[item * 32 + lane] & 31), gain = in[item * 32 + lane] >> 27;
        u32 *row = mem + item * 48, *before = row - 48;
        for (u32 c = 0; c <= capacity; c++) {
            row[c] = before[c];
            if (c >= weight && before[c - weight] + gain > row[c])
                row[c] = before[c - weight] + gain;
        }
    }
    u32 c = capacity;
    for (u32 item = 10; item > 0; item--) {
        if (mem[item * 48 + c] == mem[item * 48 - 48 + c])
            continue;
        s |= 1u << item;
        c -= 2 + (in[item * 32 + lane] & 31);
        if (c < 2)
            break;
    }
    return s * 64 + mem[480 + capacity];
}
