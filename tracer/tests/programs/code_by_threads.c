/* Code that threads write while others run code beside it. argv: how, bytes from place to place, rounds, threads.
   own: each thread writes a function at its place, and calls it.
   handed: each thread writes the functions of the next one, which waits for them, and calls them.
   flipped: the same, in pages that can be written or executed, not both. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST = 8, PAGES = 64 };
static unsigned char *memory;
static int distance, rounds, threads, flips;
static struct { int written, called; char apart[120]; } states[MOST];
static long wrong[MOST];

static int number(int round) { return (round & 127) + 512; }

static void put(unsigned char *place, int round) {
    unsigned char code[6] = {0xb8, round & 127, 2, 0, 0, 0xc3}; /* mov eax, N; ret */
    memcpy(place, code, 6);
}

static int call(unsigned char *place) { return ((int (*)(void))place)(); }

static void *own(void *argument) {
    long id = (long)argument;
    for (int i = 0; i < rounds; i++) {
        put(memory + id * distance, i);
        wrong[id] += call(memory + id * distance) != number(i);
    }
    return 0;
}

static void await(int *state, int value) {
    for (int i = 0; __atomic_load_n(state, __ATOMIC_ACQUIRE) != value; i++)
        if (i % 64 == 63) sched_yield();
}

static void serialize(void) {
    int a = 0, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d) : : "memory");
}

/* Calls what the thread before it has written, and writes for the one behind it. */
static void *handed(void *argument) {
    long id = (long)argument, next = (id + 1) % threads;
    unsigned char *mine = memory + id * distance, *theirs = memory + next * distance;
    for (int i = 0; i < rounds; i++) {
        await(&states[next].called, i);
        if (flips) mprotect(theirs, 4096, PROT_READ | PROT_WRITE);
        put(theirs, i);
        if (flips) mprotect(theirs, 4096, PROT_READ | PROT_EXEC);
        __atomic_store_n(&states[next].written, i + 1, __ATOMIC_RELEASE);
        await(&states[id].written, i + 1);
        serialize();
        wrong[id] += call(mine) != number(i);
        __atomic_store_n(&states[id].called, i + 1, __ATOMIC_RELEASE);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    distance = atoi(argv[2]), rounds = atoi(argv[3]), threads = atoi(argv[4]);
    flips = strcmp(argv[1], "flipped") == 0;
    memory = mmap(0, PAGES * 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t started[MOST];
    for (long i = 0; i < threads; i++) pthread_create(started + i, 0, strcmp(argv[1], "own") ? handed : own, (void *)i);
    for (int i = 0; i < threads; i++) {
        pthread_join(started[i], 0);
        printf("thread %d: %ld wrong\n", i, wrong[i]);
    }
    return 0;
}
