/* An interpreter of byte code, by a dense switch: each lane has its own program. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 a = lane, b = 1, pc = 0, steps = 0;
    while (steps < 300) {
        u32 word = in[(pc + lane * 64) % IN_WORDS];
        steps++;
        pc++;
        switch (word >> 28) {
        case 0:
        case 1:
            a += b;
            break;
        case 2:
            a -= word & 255;
            break;
        case 3:
            b ^= a;
            break;
        case 4:
            mem[word & 15] = a;
            break;
        case 5:
            b = mem[word & 15];
            break;
        case 6:
            if (a & 1)
                pc += word & 7;
            break;
        case 7:
            if (b > a)
                pc = (pc - (word & 3)) & 63;
            break;
        case 8:
            for (u32 k = word & 7; k > 0; k--)
                a = a * 3 + b;
            break;
        case 9:
            a = a << 3 | a >> 29;
            break;
        case 10:
            if ((word & 0xff00) == 0)
                return a;
            break;
        default:
            b += word;
        }
    }
    return a ^ b;
}
