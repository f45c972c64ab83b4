// Two blocks of 1,024 elements each, shared out to four threads: no thread goes round the loop of the blocks. An element
// costs 1 to 8 turns. Right: 2 lanes of 1,024 elements each, a sixteenth of a warp.
#include <stdio.h>

enum { BLOCK = 1024 };
int out[4 * BLOCK];

int main(int argc, char **argv) {
    long n = 2 * BLOCK * argc;
#pragma omp parallel
    {
        unsigned seed = argc;
#pragma omp for
        for (long block = 0; block < n; block += BLOCK) {
            seed += block;
            for (long e = block; e < (block + BLOCK < n ? block + BLOCK : n); e++)
                for (int i = e & 7; i >= 0; i--) out[e] += seed = seed * 5 + i;
        }
    }
    printf("%d\n", out[7]);
}
