/* Steps of Collatz's sequence until 1 or a limit: a loop whose trips differ by lane, with a short if-else inside. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 sum = 0;
    (void)mem;
    for (u32 i = 1; i < 12; i++) {
        u32 c = in[i * 32 + lane] >> 8 | 1, n = 0;
        while (c != 1 && n < 150) {
            c = c & 1 ? 3 * c + 1 : c >> 1;
            n++;
        }
        sum += n;
    }
    return sum;
}
