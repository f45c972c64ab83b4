/* Three threads count in a file, ARGV[1], each time behind a mark in their code, until the process ends ARGV[2] microseconds later. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned long *counts;

static __attribute__((noinline)) unsigned long odd(unsigned long state) { return state * 3 + 1; }
static __attribute__((noinline)) unsigned long even(unsigned long state) { return state >> 1 ^ state << 7; }
static unsigned long (*volatile steps[2])(unsigned long) = {even, odd};

static void *count(void *n) {
    volatile unsigned long *mine = counts + (long)n;
    unsigned long state = 27 + (unsigned long)n;
    for (;;) {
        __asm__ volatile("nopl 0x12345678(%%rax)\n\tincq %0" : "+m"(*mine));
        if (n) state = steps[state >> 3 & 1](state);
    }
    return 0;
}

int main(int argc, char **argv) {
    pthread_t thread;
    int file = open(argv[argc - 2], O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, 4096) != 0) return 1;
    counts = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (long i = 0; i < 3; i++) pthread_create(&thread, 0, count, (void *)i);
    while (!counts[0] || !counts[1] || !counts[2]) usleep(100);
    usleep(atoi(argv[argc - 1]));
    _exit(6);
}
