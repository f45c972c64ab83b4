// Threads go round a loop in a loop when the recording begins, each somewhere in them.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
static volatile int done;
static int data[64];
__attribute__((noinline)) void begin(void) { done = 1; }
static void *work(void *from) {
    long sum = 0;
    while (!done) {
        long i = 0, k;
        __asm__ volatile("1: mov $20, %1\n"
                         "2: add (%3), %2\n dec %1\n jz 3f\n jmp 2b\n"
                         "3: inc %0\n cmp $400, %0\n jl 1b\n"
                         : "+r"(i), "=&r"(k), "+r"(sum) : "r"(data) : "memory");
        sched_yield();
    }
    return (void *)sum;
}
int main(void) {
    pthread_t threads[8];
    for (int t = 0; t < 8; t++) pthread_create(threads + t, 0, work, 0);
    usleep(20000);
    begin();
    for (int t = 0; t < 8; t++) pthread_join(threads[t], 0);
    printf("%d\n", done);
}
