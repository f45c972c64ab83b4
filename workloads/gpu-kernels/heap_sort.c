/* Heap sort: the sift goes down until a parent is larger than both children. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 count = 32 + (lane & 7), s = 0;
    for (u32 i = 0; i < count; i++)
        mem[i] = in[i * 32 + lane] >> 10;
    u32 start = count / 2, end = count;
    for (;;) {
        if (start > 0) {
            start--;
        } else {
            end--;
            if (end == 0)
                break;
            u32 t = mem[end];
            mem[end] = mem[0];
            mem[0] = t;
        }
        u32 at = start;
        while (2 * at + 1 < end) {
            u32 child = 2 * at + 1;
            if (child + 1 < end && mem[child + 1] > mem[child])
                child++;
            if (mem[at] >= mem[child])
                break;
            u32 t = mem[at];
            mem[at] = mem[child];
            mem[child] = t;
            at = child;
        }
    }
    for (u32 i = 0; i < count; i++)
        s = s * 31 + mem[i];
    return s;
}
