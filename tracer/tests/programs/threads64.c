/* 64 threads at once, joined in order. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static void *square(void *n) { return (void *)((intptr_t)n * (intptr_t)n); }

int main(void) {
    pthread_t threads[64];
    intptr_t sum = 0;
    for (intptr_t i = 0; i < 64; i++) pthread_create(&threads[i], 0, square, (void *)i);
    for (int i = 0; i < 64; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (intptr_t)result;
    }
    printf("%ld\n", (long)sum);
    return 64;
}
