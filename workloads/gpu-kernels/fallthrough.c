/* A switch whose arms fall through, as a copy loop unrolled by hand has it. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0, at = lane * 31;
    for (u32 i = 0; i < 60; i++) {
        u32 length = in[(i * 32 + lane) % IN_WORDS] >> 27, turns = length / 4;
        switch (length % 4) {
        case 3:
            mem[at++ % 512] = s + 3;
            /* fall through */
        case 2:
            mem[at++ % 512] = s + 2;
            /* fall through */
        case 1:
            mem[at++ % 512] = s + 1;
        }
        while (turns-- > 0) {
            mem[at % 512] = at;
            mem[(at + 1) % 512] ^= s;
            at += 4;
        }
        s += mem[length];
    }
    return s;
}
