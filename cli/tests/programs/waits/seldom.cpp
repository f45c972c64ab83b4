// A lock (KIND) at which hardly anybody ever waits: threads come one after another. 0 tickets, by plain loads; 1
// Mellor-Crummey and Scott's; 2 the owner's number; 3 how many hold it; 4 how many may come; 5 who writes by a sequence; 6
// a bit that is set and cleared by comparison; 7 a filter after Peterson, of loads and stores alone; 8 a turn that is
// handed on; 9 an event counter of the kernel; 10 a pipe.
#include <atomic>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

static thread_local long who;
#if KIND == 0
static std::atomic<int> tickets, serving;
static int mine;
static void take() {
    int drawn = tickets.fetch_add(1);
    while (serving.load(std::memory_order_acquire) != drawn) {
    }
    mine = drawn;
}
static void give() { serving.store(mine + 1, std::memory_order_release); }
#elif KIND == 2
static std::atomic<int> owner{-1}, numbers;
static thread_local int me = numbers++;
static void take() {
    for (int none = -1; !owner.compare_exchange_weak(none, me, std::memory_order_acquire); none = -1) sched_yield();
}
static void give() { owner.store(-1, std::memory_order_release); }
#elif KIND == 3
static std::atomic<int> holders;
static void take() {
    while (holders.fetch_add(1) != 0) {
        holders.fetch_sub(1);
        sched_yield();
    }
}
static void give() { holders.fetch_sub(1); }
#elif KIND == 4
static std::atomic<int> free_places{1};
static void take() {
    while (free_places.fetch_sub(1) <= 0) {
        free_places.fetch_add(1);
        sched_yield();
    }
}
static void give() { free_places.fetch_add(1); }
#elif KIND == 5
static std::atomic<unsigned> sequence;
static void take() {
    for (;;) {
        unsigned before = sequence.load(std::memory_order_relaxed);
        if (before % 2 == 0 && sequence.compare_exchange_weak(before, before + 1, std::memory_order_acquire)) return;
        sched_yield();
    }
}
static void give() { sequence.store(sequence.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
#elif KIND == 6
static std::atomic<unsigned long> bits;
static void take() {
    for (unsigned long none = bits.load(); none & ~2ul || !bits.compare_exchange_strong(none, 1); none = bits.load()) {
        bits.fetch_or(2);
        sched_yield();
    }
}
static void give() {
    unsigned long before = bits.load();
    while (!bits.compare_exchange_strong(before, before & ~1ul)) {
    }
}
#elif KIND == 7
enum { THREADS = 8 };
static std::atomic<int> levels[THREADS], last_at[THREADS], numbers;
static thread_local int me = numbers++;
static void take() {
    for (int level = 1; level < THREADS; level++) {
        levels[me].store(level);
        last_at[level].store(me);
        for (int other = 0; other < THREADS; other++)
            while (other != me && levels[other].load() >= level && last_at[level].load() == me) sched_yield();
    }
}
static void give() { levels[me].store(0); }
#elif KIND == 8
static std::atomic<int> turn;
static thread_local int given;
static void take() {
    int mine = who;
    while (turn.load(std::memory_order_acquire) != mine) __builtin_ia32_pause();
}
static void give() {
    if (++given == 2) turn.store(who + 1, std::memory_order_release);
}
#elif KIND == 9
static int token = eventfd(1, 0);
static eventfd_t taken;
static void take() { eventfd_read(token, &taken); }
static void give() { eventfd_write(token, 1); }
#elif KIND == 10
static int ends[2];
static char token;
static const bool is_there = pipe(ends) == 0 && write(ends[1], &token, 1) == 1;
static void take() { read(ends[0], &token, 1); }
static void give() { write(ends[1], &token, 1); }
#else
struct Node {
    std::atomic<Node *> next;
    std::atomic<bool> waits;
};
static std::atomic<Node *> tail;
static thread_local Node mine;
static void take() {
    mine.next.store(nullptr, std::memory_order_relaxed);
    mine.waits.store(true, std::memory_order_relaxed);
    Node *before = tail.exchange(&mine, std::memory_order_acq_rel);
    if (!before) return;
    before->next.store(&mine, std::memory_order_release);
    while (mine.waits.load(std::memory_order_acquire)) {
    }
}
static void give() {
    Node *expected = &mine;
    if (!mine.next.load(std::memory_order_acquire)) {
        if (tail.compare_exchange_strong(expected, nullptr)) return;
        while (!mine.next.load(std::memory_order_acquire)) {
        }
    }
    mine.next.load(std::memory_order_acquire)->waits.store(false, std::memory_order_release);
}
#endif

static long sum;

static void *work(void *a) {
    who = (long)a;
    for (volatile long delay = 0; delay < (long)a * 200000; delay = delay + 1) {
    }
    for (int round = 0; round < 2; round++) {
        take();
        for (int i = 0; i < 20000; i++) {
            sum += i;
            __asm__ volatile("" ::: "memory");
        }
        give();
    }
    return a;
}

int main() {
    pthread_t threads[8];
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
}
