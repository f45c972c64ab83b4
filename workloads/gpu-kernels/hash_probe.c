/* Insertion into and look-up in a hash table with linear probing. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    for (u32 i = 0; i < 90; i++) {
        u32 key = (in[(i * 32 + lane) % IN_WORDS] & 0xff) + 1, at = key * 37 & 127;
        while (mem[at] != 0 && mem[at] != key)
            at = (at + 1) & 127;
        if (mem[at] == key) {
            s++;
        } else if (i < 70) {
            mem[at] = key;
        }
    }
    for (u32 key = 1; key < 100; key += 3) {
        u32 at = key * 37 & 127, steps = 0;
        while (mem[at] != key) {
            if (mem[at] == 0) {
                steps = 0;
                break;
            }
            at = (at + 1) & 127;
            steps++;
        }
        s += steps;
    }
    return s;
}
