/* A function inlined at two calls: the trips of its inner loop differ between lanes at the first one alone. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { LANES = 8 };

static unsigned results[LANES], spreads[2] = {40, 1};

#ifdef APART
#define WALK __attribute__((noinline))
#else
#define WALK inline __attribute__((always_inline))
#endif

static WALK unsigned walk(unsigned x, unsigned lane, unsigned spread)
{
    for (unsigned turn = 0; turn < 12; turn++) {
        unsigned trips = 40 - ((lane + 1) * (turn + 1) * 2654435761u >> 16) % spread;
        do {
#pragma clang loop unroll(full)
            for (unsigned i = 0; i < 12; i++)
                x = (x ^ x >> 7) * 1664525u + i;
        } while (--trips > 0);
        x += turn;
    }
    return x;
}

static __attribute__((noinline)) void kernel(unsigned lane)
{
    unsigned x = lane;
#ifdef ONE_LINE
    x = walk(x, lane, spreads[0]), x = walk(x, lane, spreads[1]);
#else
    x = walk(x, lane, spreads[0]);
    x = walk(x, lane, spreads[1]);
#endif
    results[lane] = x;
}

static void *start(void *lane)
{
    kernel((unsigned)(uintptr_t)lane);
    return NULL;
}

int main(void)
{
    pthread_t threads[LANES];
    unsigned sum = 0;
    for (uintptr_t lane = 0; lane < LANES; lane++)
        pthread_create(&threads[lane], NULL, start, (void *)lane);
    for (unsigned lane = 0; lane < LANES; lane++)
        pthread_join(threads[lane], NULL);
    for (unsigned lane = 0; lane < LANES; lane++)
        sum = sum * 31 + results[lane];
    printf("%u\n", sum);
    return 0;
}
