// Twelve short threads clear a table, four at a time; then four threads do all the work, as chess engines and servers
// start up. The lanes to look at are those four: they use (1 + 2 + 3 + 4) / (4 * 4) of their seats.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static char table[12][4096];
static long out[4];

static void *clear(void *row) {
    memset(row, 1, 4096);
    return NULL;
}

__attribute__((noinline)) static long inside(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += sum ^ i;
    return sum;
}

static void *search(void *argument) {
    long thread = (long)argument;
    out[thread] = inside((thread + 1) * 10000);
    return NULL;
}

int main(void) {
    pthread_t threads[12];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, clear, table[round * 4 + i]);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, search, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %d\n", out[0] + out[3], table[7][7]);
}
