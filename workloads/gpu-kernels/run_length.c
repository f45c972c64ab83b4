/* Run-length decoding: literals and runs of lengths that differ by lane, until the output is full. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 from = lane * 100, to = 0;
    while (to < 300) {
        u32 token = in[from++ % IN_WORDS];
        if (token & 1) {
            u32 length = (token >> 1 & 15) + 2, value = token >> 8 & 255;
            if (to + length > 300)
                length = 300 - to;
            for (u32 k = 0; k < length; k++)
                mem[to++] = value;
        } else {
            u32 count = token >> 1 & 3;
            do
                mem[to++] = in[from++ % IN_WORDS] & 255;
            while (count-- > 0 && to < 300);
        }
    }
    u32 s = from;
    for (u32 i = 0; i < 300; i += 3)
        s = s * 3 + mem[i];
    return s;
}
