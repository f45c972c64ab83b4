// Threads wait in the kernel, and one computes, when the program ends: a leak checker stops them all, and finds what only
// their stacks and registers hold. With an argument one block is lost.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t all_are_there;

static void *sleeps(void *unused) {
    char *volatile held = malloc(100);
    held[0] = 1;
    pthread_barrier_wait(&all_are_there);
    for (;;) {
        if (!held) return unused;
        usleep(500);
    }
}

static void *computes(void *unused) {
    char *volatile held = malloc(200);
    pthread_barrier_wait(&all_are_there);
    for (volatile long i = 0;; i++)
        if (!held) return unused;
}

__attribute__((noinline)) static void lose(void) {
    char *volatile lost = malloc(77);
    lost[0] = 1;
    lost = 0;
}

// Nothing on the stack points at what was lost, wherever the environment puts the stack.
__attribute__((noinline)) static void wipe(void) {
    volatile char over[1 << 16];
    for (unsigned i = 0; i < sizeof over; i++) over[i] = 0;
}

int main(int count, char **arguments) {
    (void)arguments;
    pthread_t thread;
    pthread_barrier_init(&all_are_there, 0, 5);
    for (int i = 0; i < 4; i++) pthread_create(&thread, 0, i ? sleeps : computes, 0);
    pthread_barrier_wait(&all_are_there);
    if (count > 1) {
        lose();
        wipe();
    }
    puts("done");
    return 0;
}
