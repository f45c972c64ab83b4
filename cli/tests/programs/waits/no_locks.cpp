// Atomics that are no locks and no barriers, though parts of them look so: a queue of work, shared pointers, who is the
// last to be done, a list that is pushed to and taken whole, a place that is exchanged, one counter after another, how
// many are at work, the largest number.
#include <atomic>
#include <memory>
#include <pthread.h>
#include <sched.h>

enum { LANES = 8, ITEMS = 64, WORK = 500 };

struct Node {
    Node *next;
    std::atomic<bool> used;
};

static std::atomic<int> next, done, counted, at_work, largest;
static std::atomic<Node *> list, place;
static std::atomic<int> last = ITEMS - 1;
static int sum, seen;
static long totals[LANES];
static Node nodes[LANES][ITEMS];
static std::shared_ptr<int> shared = std::make_shared<int>(1);
static pthread_barrier_t begin;

__attribute__((noinline)) static long inside(long turns) {
    long s = 0;
    for (long i = 0; i < turns; i++) {
        s += s ^ i;
        __asm__ volatile("" : "+r"(s));
    }
    return s;
}

static void *work(void *a) {
    long id = (long)a;
    pthread_barrier_wait(&begin);
    at_work.fetch_add(1);
    for (int i = 0; (i = next.fetch_add(1)) < ITEMS;) {
        if (i == last.load()) seen = seen + 1;
        totals[id] += inside(WORK);
        counted.store(counted.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    at_work.fetch_sub(1);
    for (int i = 0; i < ITEMS; i++) {
        int most = largest.load();
        while (most < i && !largest.compare_exchange_weak(most, i)) {
        }
        std::shared_ptr<int> mine = shared;
        Node *one = &nodes[id][i];
        one->next = list.load();
        while (!list.compare_exchange_weak(one->next, one)) {
        }
        Node *before = place.exchange(one);
        if (before) before->used.store(false, std::memory_order_relaxed);
        totals[id] += *mine + inside(WORK);
    }
    for (int round = 0; round < 4; round++) {
        totals[id] += inside(WORK);
        // The last of each round adds up; nobody waits for it.
        if (done.fetch_add(1) % LANES == LANES - 1)
            for (long total : totals) sum += total;
    }
    for (Node *one = list.exchange(nullptr); one; one = one->next) totals[id] += one->used;
    return a;
}

int main() {
    pthread_barrier_init(&begin, 0, LANES);
    pthread_t threads[LANES];
    for (long i = 0; i < LANES; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < LANES; i++) pthread_join(threads[i], 0);
}
