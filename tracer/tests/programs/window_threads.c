/* window_threads THREADS ROUNDS: threads that reach gates all the time, and sleep, lock and get signals between them. */
#include <lockstep.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define OWN __attribute__((noinline, noclone))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static int rounds;

OWN long step(long x) {
    for (int i = 0; i < 30; i++)
        x = x * 31 + i;
    return x;
}

OWN void done(long x) {
    pthread_mutex_lock(&mutex);
    sum += x & 0xff;
    pthread_mutex_unlock(&mutex);
}

static void handler(int number) { (void)number; }

static void *run(void *argument) {
    long x = (long)argument;
    for (int i = 0; i < rounds; i++) {
        LOCKSTEP_BEGIN;
        x = step(x);
        if (i % 8 == 3)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        LOCKSTEP_END;
        done(x);
        if (i % 8 == 5)
            raise(SIGUSR1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 2;
    rounds = argc > 2 ? atoi(argv[2]) : 10;
    signal(SIGUSR1, handler);
    pthread_t threads[16];
    for (long i = 0; i < count && i < 16; i++)
        pthread_create(&threads[i], NULL, run, (void *)(i + 1));
    for (int i = 0; i < count && i < 16; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", sum);
    return 0;
}
