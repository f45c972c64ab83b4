/* Three times: start four threads, and join them. Threads of two of these generations never run together, whatever the schedule, so no warp has lanes of both: the
 * loop's 1000 turns of 3 instructions are fetched three times over. */
#include <pthread.h>

enum { THREADS = 4, GENERATIONS = 3 };

static void *work(void *turns) {
    long left = (long)turns, sum = 0;
    __asm__ volatile("1: add %1, %0\n sub $1, %1\n jnz 1b" : "+r"(sum), "+r"(left));
    return (void *)sum;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int generation = 0; generation < GENERATIONS; generation++) {
        for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, work, (void *)1000L);
        for (int i = THREADS - 1; i >= 0; i--) pthread_join(threads[i], 0);
    }
    return 0;
}
