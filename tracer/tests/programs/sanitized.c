// Eight threads with uneven work, each with memory of its own and a lock for all; with an argument each loses some of its
// memory, which a leak checker says and ends with a status of its own.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long out[8];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long all;

static void *work(void *argument) {
    unsigned long number = (unsigned long)argument & 7;
    int loses = (unsigned long)argument > 7;
    for (int round = 0; round < 20; round++) {
        unsigned long *memory = malloc(64 + number * 16);
        memory[0] = 0;
        for (unsigned long i = 0; i < 50 * (number + 1); i++) memory[0] += i * number ^ memory[0] >> 3;
        out[number] += memory[0];
        pthread_mutex_lock(&lock);
        all += memory[0];
        pthread_mutex_unlock(&lock);
        if (!loses || round) free(memory);
    }
    return 0;
}

int main(int count, char **arguments) {
    (void)arguments;
    pthread_t threads[8];
    for (unsigned long i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, (void *)(i + (count > 1 ? 8 : 0)));
    unsigned long sum = 0;
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], 0);
        sum += out[i];
    }
    printf("%lu %d\n", sum, sum == all);
    return 0;
}
