/* Quicksort with a stack of its own, Hoare's partition, small parts by insertion. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 *stack = mem + 512, top = 0, s = 0;
    for (u32 i = 0; i < 64; i++)
        mem[i] = in[i * 32 + lane] >> 16;
    stack[top++] = 0;
    stack[top++] = 63;
    while (top > 0) {
        int high = (int)stack[--top], low = (int)stack[--top];
        if (high - low < 6) {
            for (int i = low + 1; i <= high; i++) {
                u32 v = mem[i];
                int j = i;
                for (; j > low && mem[j - 1] > v; j--)
                    mem[j] = mem[j - 1];
                mem[j] = v;
            }
            continue;
        }
        u32 pivot = mem[(low + high) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (mem[i] < pivot)
                i++;
            while (mem[j] > pivot)
                j--;
            if (i <= j) {
                u32 t = mem[i];
                mem[i++] = mem[j];
                mem[j--] = t;
            }
        }
        if (low < j) {
            stack[top++] = (u32)low;
            stack[top++] = (u32)j;
        }
        if (i < high) {
            stack[top++] = (u32)i;
            stack[top++] = (u32)high;
        }
    }
    for (u32 i = 0; i < 64; i++)
        s = s * 31 + mem[i];
    return s;
}
