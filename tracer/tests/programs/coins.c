/* Goes one of two ways three million times, by chance, so that the record of it cannot be shortened. */
#include <stdio.h>

static volatile unsigned heads, tails;

int main(void) {
    unsigned long state = 88172645463325252;
    for (int i = 0; i < 3000000; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if (state & 1) heads++;
        else tails++;
    }
    printf("%u\n", heads + tails);
    return 21;
}
