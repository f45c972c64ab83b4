// Three rounds of four threads, each joined before the next begins, then a round of two; all threads are alike. Warps of
// four are full in the first three rounds: (3 * 4 + 2) / (4 * 4) of their seats are used.
#include <pthread.h>
#include <stdio.h>

static long out[4];

static void *work(void *argument) {
    long thread = (long)argument, sum = 0;
    for (long i = 0; i < 20000; i++)
        sum += i ^ thread;
    out[thread] += sum;
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    for (int round = 0; round < 4; round++) {
        int n = round < 3 ? 4 : 2;
        for (long i = 0; i < n; i++)
            pthread_create(&threads[i], NULL, work, (void *)i);
        for (int i = 0; i < n; i++)
            pthread_join(threads[i], NULL);
    }
    printf("%ld\n", out[0]);
}
