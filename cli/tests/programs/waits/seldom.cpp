// A lock (KIND) at which hardly anybody ever waits: threads come one after another. 0 tickets, by plain loads; 1
// Mellor-Crummey and Scott's.
#include <atomic>
#include <pthread.h>

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
