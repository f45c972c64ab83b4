/* Expressions in postfix form, evaluated on a stack; an operator without operands ends the expression. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    for (u32 expression = 0; expression < 25; expression++) {
        u32 top = 0, at = expression * 150 + lane * 5;
        for (u32 k = 0; k < 24; k++) {
            u32 token = in[(at + k) % IN_WORDS] >> 4;
            if ((token & 7) < 4) {
                mem[top++] = token >> 8 & 255;
                continue;
            }
            if (top < 2)
                break;
            u32 b = mem[--top], a = mem[--top], v;
            if ((token & 7) == 4) {
                v = a + b;
            } else if ((token & 7) == 5) {
                v = a - b;
            } else if ((token & 7) == 6) {
                v = a * b;
            } else {
                if (b == 0) {
                    s += 5;
                    break;
                }
                v = a / b;
            }
            mem[top++] = v;
        }
        if (top == 1)
            s += mem[0];
        else
            s ^= top;
    }
    return s;
}
