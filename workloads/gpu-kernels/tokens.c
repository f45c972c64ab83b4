/* A tokenizer: a state machine over characters, by a switch in a switch, with its own counts in memory. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 state = 0, length = 0;
    for (u32 i = 0; i < 400; i++) {
        u32 c = in[(i + lane * 97) % IN_WORDS] >> 27;
        switch (state) {
        case 0:
            if (c < 12) {
                state = 1;
                length = 1;
            } else if (c < 22) {
                state = 2;
                length = c - 12;
            } else if (c == 22) {
                state = 3;
            }
            break;
        case 1:
            if (c < 20) {
                length++;
            } else {
                mem[length & 63]++;
                state = 0;
            }
            break;
        case 2:
            if (c >= 12 && c < 22) {
                length = length * 10 + c - 12;
            } else {
                mem[64 + (length & 63)] += length;
                state = 0;
            }
            break;
        default:
            if (c == 22)
                state = 0;
            else
                mem[128]++;
        }
    }
    return mem[3] + mem[70] + mem[128] * 3 + state;
}
