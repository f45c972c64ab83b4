/* Decoding of UTF-8 with replacement of what is wrong: one to four bytes per character. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 at = lane * 100, end = lane * 100 + 300, s = 0, wrong = 0;
    (void)mem;
    while (at < end) {
        u32 c = in[at++ % IN_WORDS] >> 3 & 255, more, v;
        if (c < 0x80) {
            s = s * 31 + c;
            continue;
        }
        if (c < 0xa0) {
            wrong++;
            continue;
        }
        if (c < 0xd0) {
            more = 1;
            v = c & 31;
        } else if (c < 0xf0) {
            more = 2;
            v = c & 15;
        } else {
            more = 3;
            v = c & 7;
        }
        while (more > 0 && at < end) {
            u32 d = in[at % IN_WORDS] >> 3 & 255;
            if (d < 0x40) {
                wrong++;
                break;
            }
            v = v << 6 | (d & 63);
            at++;
            more--;
        }
        s = s * 31 + v;
    }
    return s ^ wrong << 16;
}
