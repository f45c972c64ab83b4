/* Text wrapped at a width: words that are too long are cut, spaces at a line's end go away. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 width = 12 + (lane & 7), column = 0, lines = 0, at = lane * 60, end = at + 250;
    while (at < end) {
        u32 length = 0;
        while (at + length < end && (in[(at + length) % IN_WORDS] & 7) != 0)
            length++;
        if (length == 0) {
            at++;
            if (column > 0 && column < width)
                column++;
            continue;
        }
        if (column + length > width && column > 0) {
            lines++;
            column = 0;
        }
        while (length > width) {
            at += width;
            length -= width;
            lines++;
        }
        for (u32 k = 0; k < length; k++)
            mem[column + k] = in[(at + k) % IN_WORDS];
        at += length;
        column += length;
        if (column >= width) {
            lines++;
            column = 0;
        }
    }
    return lines * 64 + column + (mem[3] & 15);
}
