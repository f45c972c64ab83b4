/* A branch whose two arms each have a branch, figure 2(a) of Anantpur and Govindarajan (CC 2014), with a lane for each of
 * its four ways. Each block is a call of a function of its own; 2 and 5 load what the blocks behind them use. A stack runs
 * one arm and then the other; blocks in the order 1 2 5 3 6 4 7 hide what one arm waits for behind the other.
 *
 * expect: region kernel
 * expect: lanes 4
 */
#define PROGRAM "two_arms"

#include "blocks.h"

BLOCK(1)
BLOCK(2)
BLOCK(3)
BLOCK(4)
BLOCK(5)
BLOCK(6)
BLOCK(7)

static volatile long zero;

static AS_WRITTEN long kernel(long lane) {
    long path = 0;
    RUN(1, path);
    if (lane % 4 < 2) {
        RUN(2, path);
        long loaded = zero;
        if (lane % 4 == 0) {
            path += loaded;
            RUN(3, path);
        } else {
            path += loaded;
            RUN(4, path);
        }
    } else {
        RUN(5, path);
        long loaded = zero;
        if (lane % 4 == 2) {
            path += loaded;
            RUN(6, path);
        } else {
            path += loaded;
            RUN(7, path);
        }
    }
    return path;
}

static long expected(long lane) {
    static const long paths[] = {123, 124, 156, 157};
    return paths[lane % 4];
}

#include "kernel.h"
