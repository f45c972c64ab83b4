/* `if ((c1 || c2) && c3) S1; else S2; S3`, figure 1 of Anantpur and Govindarajan (CC 2014), with its four threads. Each
 * block is a call of a function of its own, b1 to b6, so that a replay tells how often the block is issued: 0 and 1 take
 * c1, of the others 2 takes c2, and 0 alone takes c3. Lanes that wait at immediate post-dominators run b3 twice and b5
 * thrice, once for each of 1, 2 and 3.
 *
 * expect: region kernel
 * expect: lanes 4
 */
#define PROGRAM "short_circuit"

#include "blocks.h"

BLOCK(1)
BLOCK(2)
BLOCK(3)
BLOCK(4)
BLOCK(5)
BLOCK(6)

static AS_WRITTEN long kernel(long lane) {
    long path = 0;
    if ((RUN(1, path) && lane % 4 < 2) || (RUN(2, path) && lane % 4 == 2)) {
        if (RUN(3, path) && lane % 4 == 0) {
            RUN(4, path);
            goto end;
        }
    }
    RUN(5, path);
end:
    RUN(6, path);
    return path;
}

static long expected(long lane) {
    static const long paths[] = {1346, 1356, 12356, 1256};
    return paths[lane % 4];
}

#include "kernel.h"
