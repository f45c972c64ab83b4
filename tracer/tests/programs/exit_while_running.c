/* The process ends while its threads spin, wait and sleep. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile int started;

static void *run(void *n) {
    __atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
    switch ((long)n) {
    case 0: for (;;) __builtin_ia32_pause();
    case 1: pthread_mutex_lock(&held); break;
    default: sleep(1000);
    }
    return 0;
}

int main(void) {
    pthread_t thread;
    pthread_mutex_lock(&held);
    for (long i = 0; i < 3; i++) pthread_create(&thread, 0, run, (void *)i);
    while (started < 3) usleep(1000);
    printf("leaving\n");
    exit(5);
}
