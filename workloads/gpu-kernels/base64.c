/* Encoding of words in base 64: the digit's character is found by an if chain; a line ends after a number of them. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 column = 0, s = 0;
    for (u32 i = 0; i < 60; i++) {
        u32 v = in[i * 32 + lane], width = 10 + (lane & 7);
        for (u32 k = 0; k < 5; k++) {
            u32 digit = v & 63, c;
            v >>= 6;
            if (digit < 26)
                c = 'A' + digit;
            else if (digit < 52)
                c = 'a' + digit - 26;
            else if (digit < 62)
                c = '0' + digit - 52;
            else if (digit == 62)
                c = '+';
            else
                c = '/';
            mem[column] = c;
            column++;
            if (column == width) {
                for (u32 j = 0; j < width; j++)
                    s = s * 31 + mem[j];
                column = 0;
            }
        }
    }
    return s;
}
