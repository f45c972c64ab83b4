/* 16 threads; two of four arms go to one shared loop, the others continue: an `if` that is not nested. */
#include <pthread.h>
#include <stdio.h>

static long out[16];

static void *run(void *argument)
{
    long t = (long)argument, s = 0;
    unsigned z = 17 * t + 1;
    for (int i = 0; i < 4000; i++) {
        z = z * 1664525u + 1013904223u;
        int a = z >> 30 & 1, b = z >> 29 & 1, c = z >> 28 & 1;
        if (a) {
            if (b)
                goto shared;
            s += i;
        } else {
            s ^= i;
            if (c)
                goto shared;
            s -= 3;
        }
        s += 5;
        continue;
    shared:
        for (int k = 0; k < 12; k++)
            s = s * 3 + k;
    }
    out[t] = s;
    return 0;
}

int main(void)
{
    pthread_t threads[16];
    for (long t = 0; t < 16; t++)
        pthread_create(&threads[t], 0, run, (void *)t);
    for (int t = 0; t < 16; t++)
        pthread_join(threads[t], 0);
    long s = 0;
    for (int t = 0; t < 16; t++)
        s += out[t];
    printf("%ld\n", s);
}
