// Locks that a program makes of std::atomic (KIND) in the forms of kinds.c (FORM). Without optimisation the operations
// are functions, and what they put is a parameter. 4 to 8: locks at which
// threads queue; from 9 on: barriers (ROUNDS); 14: turns; 15: nothing; 16 and 17: locks of flags.
#include <atomic>
#include <climits>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

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
#elif KIND == 4 // tickets, counted up by an atomic
static std::atomic<int> tickets[2], serving[2];
static void take(int n) {
    int mine = tickets[n].fetch_add(1);
    while (serving[n].load() != mine) sched_yield();
}
static void give(int n) { serving[n].fetch_add(1); }
#elif KIND == 5 // tickets, by a plain store, of a lock that is found by its address
struct Lock {
    std::atomic<unsigned> next, serving;
    void lock() {
        unsigned mine = next.fetch_add(1, std::memory_order_relaxed);
        while (serving.load(std::memory_order_acquire) != mine) sched_yield();
    }
    void unlock() { serving.store(serving.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
};
static Lock *locks = new Lock[2];
static void take(int n) { locks[n].lock(); }
static void give(int n) { locks[n].unlock(); }
#elif KIND == 6 // tickets, by what the thread drew
static std::atomic<long> tickets[2], serving[2];
static long owner[2];
static void take(int n) {
    long mine = tickets[n].fetch_add(1, std::memory_order_relaxed);
    while (serving[n].load(std::memory_order_acquire) != mine) sched_yield();
    owner[n] = mine;
}
static void give(int n) { serving[n].store(owner[n] + 1, std::memory_order_release); }
#elif KIND == 7 // Mellor-Crummey and Scott's
struct Node {
    std::atomic<Node *> next;
    std::atomic<bool> waits;
};
static std::atomic<Node *> tails[2];
static thread_local Node nodes[2];
static void take(int n) {
    Node *mine = &nodes[n];
    mine->next.store(nullptr, std::memory_order_relaxed);
    mine->waits.store(true, std::memory_order_relaxed);
    Node *before = tails[n].exchange(mine, std::memory_order_acq_rel);
    if (before) {
        before->next.store(mine, std::memory_order_release);
        while (mine->waits.load(std::memory_order_acquire)) sched_yield();
    }
    sched_yield(); // so that others queue
}
static void give(int n) {
    Node *mine = &nodes[n], *expected = mine;
    if (!mine->next.load(std::memory_order_acquire)) {
        if (tails[n].compare_exchange_strong(expected, nullptr)) return;
        while (!mine->next.load(std::memory_order_acquire)) sched_yield();
    }
    mine->next.load(std::memory_order_acquire)->waits.store(false, std::memory_order_release);
}
#elif KIND == 8 // Craig, Landin and Hagersten's
struct Node {
    std::atomic<bool> busy;
};
static Node nodes[2 * LANES + 2];
static std::atomic<Node *> tails[2] = {&nodes[0], &nodes[1]};
static std::atomic<int> used = 2;
static thread_local Node *mine[2], *others[2];
static void take(int n) {
    if (!mine[n]) mine[n] = &nodes[used++];
    mine[n]->busy.store(true, std::memory_order_relaxed);
    Node *before = tails[n].exchange(mine[n], std::memory_order_acq_rel);
    while (before->busy.load(std::memory_order_acquire)) sched_yield();
    others[n] = before;
    sched_yield();
}
static void give(int n) {
    mine[n]->busy.store(false, std::memory_order_release);
    mine[n] = others[n];
}
#elif KIND == 9 // the last begins a generation
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
#elif KIND == 10 // counted down, with a sense that is reversed
static std::atomic<int> left = LANES;
static std::atomic<bool> sense;
static thread_local bool mine;
static void meet() {
    mine = !mine;
    if (left.fetch_sub(1) == 1) {
        left.store(LANES);
        sense.store(mine);
    } else {
        while (sense.load() != mine) sched_yield();
    }
}
#elif KIND == 11 // by plain stores
static std::atomic<unsigned> arrived, generation;
static void meet() {
    unsigned mine = generation.load(std::memory_order_acquire);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) == LANES - 1) {
        arrived.store(0, std::memory_order_relaxed);
        generation.store(mine + 1, std::memory_order_release);
    } else {
        while (generation.load(std::memory_order_acquire) == mine) sched_yield();
    }
}
#elif KIND == 12 // of a futex
static std::atomic<int> arrived, generation;
static void meet() {
    int mine = generation.load();
    if (arrived.fetch_add(1) + 1 == LANES) {
        arrived.store(0);
        generation.fetch_add(1);
        syscall(SYS_futex, &generation, FUTEX_WAKE, INT_MAX, 0, 0, 0);
    } else {
        while (generation.load() == mine) syscall(SYS_futex, &generation, FUTEX_WAIT, mine, 0, 0, 0);
    }
}
#elif KIND == 13 // all wait until as many as there are have come
static std::atomic<int> arrived;
static thread_local int round_of_mine;
static void meet() {
    int all = ++round_of_mine * LANES;
    arrived.fetch_add(1);
    while (arrived.load() < all) sched_yield();
}
#elif KIND == 14 // no barrier: each thread waits for the one before it
static std::atomic<int> turn;
static void meet(long id, int round) {
    while (turn.load() < round * LANES + id) sched_yield();
    turn.store(round * LANES + id + 1);
}
#elif KIND == 16 // a flag for each place in line, as T. Anderson's
static std::atomic<bool> flags[2][LANES] = {{true}, {true}};
static std::atomic<unsigned> places[2];
static unsigned owner[2];
static void take(int n) {
    unsigned mine = places[n]++ % LANES;
    while (!flags[n][mine]) sched_yield();
    flags[n][mine] = false;
    owner[n] = mine;
    for (int i = 0; i < LANES; i++) sched_yield();
}
static void give(int n) { flags[n][(owner[n] + 1) % LANES] = true; }
#elif KIND == 17 // numbers that threads choose, as in Lamport's bakery
static std::atomic<int> chooses[2][LANES], numbers[2][LANES];
static std::atomic<int> threads_so_far;
static thread_local int self = threads_so_far++;
static void take(int n) {
    chooses[n][self] = 1;
    int most = 0;
    for (int i = 0; i < LANES; i++) most = numbers[n][i] > most ? numbers[n][i].load() : most;
    numbers[n][self] = most + 1;
    chooses[n][self] = 0;
    for (int i = 0; i < LANES; i++) {
        while (chooses[n][i]) sched_yield();
        for (int one; (one = numbers[n][i]) && (one < most + 1 || one == most + 1 && i < self);) sched_yield();
    }
    for (int i = 0; i < LANES; i++) sched_yield();
}
static void give(int n) { numbers[n][self] = 0; }
#else // no lock
static void take(int) {}
static void give(int) {}
#endif

static long total[LANES], own[LANES];
static pthread_barrier_t begin;

static void *work(void *a) {
    long id = (long)a;
    pthread_barrier_wait(&begin);
#if KIND == 14
    for (int round = 0; round < ROUNDS; round++) {
        own[id] += inside(WORK / 4);
        meet(id, round);
    }
#elif KIND >= 9 && KIND <= 13
    for (int round = 0; round < ROUNDS; round++) {
        if (round % LANES == id) own[id] += inside(WORK / 4);
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
