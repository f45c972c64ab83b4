/* Green threads that wait in the middle of a function, by ucontext's switches or by one of its own, on stacks of the
   heap or of their thread's frame. Each makes so many turns of a marked loop as it prints in the end. With MOVES a
   second thread goes on with what the first one began. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#ifndef THREADS
#define THREADS 1
#endif
enum { GREEN = 24, STACK = 65536 };
#define TURN __asm__ volatile("nopl 0x12345678(%rax,%rax)")

static unsigned turns[THREADS * GREEN];

#ifdef OWN_SWITCH
typedef struct {
    void *sp;
} context;
void go(context *from, context *to);
__asm__(".text\n.globl go\n.type go, @function\ngo: push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n"
        " push %r15\n mov %rsp, (%rdi)\n mov (%rsi), %rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n"
        " pop %rbx\n ret\n");
#else
typedef ucontext_t context;
#define go swapcontext
#endif

struct pool {
    context scheduler, green[GREEN];
    int now, done[GREEN], first;
};
static struct pool pools[THREADS];
static __thread struct pool *mine;

static unsigned mix(unsigned i) { return i * 2654435761u >> 26; }

__attribute__((noinline)) static void yield(void) {
#ifndef PLAIN
    struct pool *pool = mine;
    go(&pool->green[pool->now], &pool->scheduler);
#endif
}

__attribute__((noinline)) static void work(unsigned i, unsigned n) {
    for (unsigned turn = 0; turn < n; turn++) TURN;
    turns[i] += n;
}

__attribute__((noinline)) static void deep(unsigned i, int depth) {
    work(i, 1 + depth);
    if (depth)
        deep(i, depth - 1);
    else
        yield();
    work(i, mix(i + depth) / 8);
}

__attribute__((noinline)) void body(unsigned i) {
    work(i, mix(i));
    for (unsigned k = 0; k < i % 5; k++) {
        deep(i, k % 3);
        yield();
    }
    work(i, mix(i + 100));
}

#ifdef PLAIN
static void make(struct pool *pool, char *stacks) { (void)pool, (void)stacks; }

static void run(struct pool *pool, int rounds) {
    for (int i = 0; i < GREEN; i++) body(pool->first + i);
    (void)rounds;
}
#else
static void start(void) {
    body(mine->first + mine->now);
    mine->done[mine->now] = 1;
    for (;;) yield();
}

static void make(struct pool *pool, char *stacks) {
    for (int i = 0; i < GREEN; i++) {
#ifdef OWN_SWITCH
        void **top = (void **)((uintptr_t)(stacks + (i + 1) * STACK) & ~(uintptr_t)15);
        *--top = 0;
        *--top = (void *)start;
        pool->green[i].sp = top - 6;
#else
        getcontext(&pool->green[i]);
        pool->green[i].uc_stack.ss_sp = stacks + i * STACK;
        pool->green[i].uc_stack.ss_size = STACK;
        makecontext(&pool->green[i], start, 0);
#endif
    }
}

__attribute__((noinline)) void run(struct pool *pool, int rounds) {
    for (int left = 1; left && rounds > 0; rounds--) {
        left = 0;
        for (int i = 0; i < GREEN; i++) {
            if (pool->done[i]) continue;
            left = 1;
            pool->now = i;
            go(&pool->scheduler, &pool->green[i]);
        }
    }
}
#endif

static void *thread(void *argument) {
    int number = (int)(intptr_t)argument;
#ifdef MOVES
    mine = pools;
    if (number) {
        run(mine, 1000);
        return NULL;
    }
#else
    mine = &pools[number];
#endif
    mine->first = number * GREEN;
#ifdef IN_FRAME
    char stacks[GREEN * STACK];
#else
    char *stacks = malloc(GREEN * STACK);
#endif
    make(mine, stacks);
#ifdef MOVES
    run(mine, 2);
#else
    run(mine, 1000);
#endif
    return NULL;
}

int main(void) {
    pthread_t all[THREADS];
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&all[i], NULL, thread, (void *)i);
#ifdef MOVES
        pthread_join(all[i], NULL);
    }
#else
    }
    for (int i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
#endif
    for (int i = 0; i < THREADS * GREEN; i++) printf("%u\n", turns[i]);
}
