// Locks that a program makes of std::atomic (KIND) in the forms of kinds.c (FORM). Without optimisation the operations
// are functions, and what they put is a parameter. 4: a ticket lock; 5: a barrier.
#include <atomic>
#include <pthread.h>
#include <sched.h>

enum { LANES = 8, SHORT = 200, WORK = 4000, ROUNDS = 16 };

__attribute__((noinline)) static long inside(long turns) {
    long s = 0;
    for (long i = 0; i < turns; i++) {
        s += s ^ i;
        __asm__ volatile("" : "+r"(s));
    }
    return s;
}

#if KIND == 0
static std::atomic_flag locks[2] = {ATOMIC_FLAG_INIT, ATOMIC_FLAG_INIT};
static void take(int n) { while (locks[n].test_and_set(std::memory_order_acquire)) sched_yield(); }
static void give(int n) { locks[n].clear(std::memory_order_release); }
#elif KIND == 1
static std::atomic<bool> locks[2];
static void take(int n) { while (locks[n].exchange(true, std::memory_order_acquire)) sched_yield(); }
static void give(int n) { locks[n].store(false, std::memory_order_release); }
#elif KIND == 2
static std::atomic<int> locks[2];
static void take(int n) {
    int none = 0;
    while (!locks[n].compare_exchange_weak(none, 1, std::memory_order_acquire)) {
        none = 0;
        sched_yield();
    }
}
static void give(int n) { locks[n].store(0, std::memory_order_release); }
#elif KIND == 3
static std::atomic<bool> locks[2];
static void take(int n) {
    do {
        while (locks[n].load(std::memory_order_relaxed)) __builtin_ia32_pause();
    } while (locks[n].exchange(true));
}
static void give(int n) { locks[n] = false; }
#elif KIND == 4
static std::atomic<int> tickets[2], serving[2];
static void take(int n) {
    int mine = tickets[n].fetch_add(1);
    while (serving[n].load() != mine) sched_yield();
}
static void give(int n) { serving[n].fetch_add(1); }
#elif KIND == 5
static std::atomic<int> arrived, generation;
static void meet() {
    int mine = generation;
    if (++arrived == LANES) {
        arrived = 0;
        generation++;
    } else {
        while (generation == mine) sched_yield();
    }
}
#endif

static long total[LANES];
static pthread_barrier_t begin;

static void *work(void *a) {
    long id = (long)a;
    pthread_barrier_wait(&begin);
#if KIND == 5
    for (int round = 0; round < ROUNDS; round++) {
        if (round % LANES == id) total[id] += inside(WORK / 4);
        meet();
    }
#else
#include "forms.h"
#endif
    return a;
}

int main() {
    pthread_barrier_init(&begin, 0, LANES);
    pthread_t threads[LANES];
    for (long i = 0; i < LANES; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < LANES; i++) pthread_join(threads[i], 0);
}
