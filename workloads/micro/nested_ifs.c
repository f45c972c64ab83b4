/* Three ifs, each in the one before, figure 3 of Anantpur and Govindarajan (CC 2014): of four lanes one takes the else of
 * each. Each block is a call of a function of its own, named b and a digit or, for b10, a zero. While S1 (b6) runs for lane
 * 0, the paper's stack has seven entries: for the end and for each branch's join and other side.
 *
 * expect: region kernel
 * expect: lanes 4
 */
#define PROGRAM "nested_ifs"

#include "blocks.h"

BLOCK(0)
BLOCK(1)
BLOCK(2)
BLOCK(3)
BLOCK(4)
BLOCK(5)
BLOCK(6)
BLOCK(7)
BLOCK(8)
BLOCK(9)

static AS_WRITTEN long kernel(long lane) {
    long path = 0;
    RUN(1, path);
    if (lane % 4 != 3) {
        RUN(2, path);
        if (lane % 4 != 2) {
            RUN(4, path);
            if (lane % 4 != 1) {
                RUN(6, path);
            } else {
                RUN(7, path);
            }
            RUN(8, path);
        } else {
            RUN(5, path);
        }
        RUN(9, path);
    } else {
        RUN(3, path);
    }
    RUN(0, path);
    return path;
}

static long expected(long lane) {
    static const long paths[] = {1246890, 1247890, 12590, 130};
    return paths[lane % 4];
}

#include "kernel.h"
