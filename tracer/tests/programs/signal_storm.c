/* Threads that compute, call, sleep and wait while signals reach them all the time; one that waits gets none and must not notice.
 * argv[1]: how many signals each gets. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 3 };

static atomic_int handled, done;
static int pipe_ends[2];

static void handler(int number) { atomic_fetch_add(&handled, number == SIGUSR1); }

static unsigned step(unsigned x) {
    for (int i = 0; i < 50; i++) x = x % 3 ? x * 1664525 + 1013904223 : x / 2 + 7;
    return x;
}

static void *work(void *argument) {
    unsigned x = (unsigned)(size_t)argument, rounds = 0;
    struct timespec nap = {0, 20000};
    while (!atomic_load(&done)) {
        x = step(x);
        if (++rounds % 64 == 0) nanosleep(&nap, 0);
        if (rounds % 16 == 0) syscall(SYS_getppid);
    }
    return (void *)(size_t)(x & 1);
}

/* A call that ends with EINTR when its thread is stopped, though no signal comes. */
static void *wait_quietly(void *argument) {
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(0);
    epoll_ctl(set, EPOLL_CTL_ADD, pipe_ends[0], &event);
    int ready = epoll_wait(set, &event, 1, -1);
    return ready == 1 ? argument : 0;
}

int main(int argc, char **argv) {
    int signals = argc > 1 ? atoi(argv[1]) : 50;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, 0);
    if (pipe(pipe_ends)) return 2;
    pthread_t waiter, workers[WORKERS];
    pthread_create(&waiter, 0, wait_quietly, &done);
    for (size_t i = 0; i < WORKERS; i++) pthread_create(&workers[i], 0, work, (void *)i);
    struct timespec pause = {0, 100000};
    for (int i = 0; i < signals; i++) {
        int before = atomic_load(&handled);
        for (int w = 0; w < WORKERS; w++) pthread_kill(workers[w], SIGUSR1);
        while (atomic_load(&handled) < before + WORKERS) nanosleep(&pause, 0);
    }
    atomic_store(&done, 1);
    for (int w = 0; w < WORKERS; w++) pthread_join(workers[w], 0);
    void *quiet;
    if (write(pipe_ends[1], "x", 1) != 1) return 2;
    pthread_join(waiter, &quiet);
    printf("%d signals, %s\n", atomic_load(&handled), quiet ? "no interruption" : "interrupted");
    return 0;
}
