// A lock in an object that is found by a pointer (KIND), given by a plain store if it is no other: 0 the owner's number;
// 1 what is free, exchanged by comparison; 2 how many hold it; 3 how many may come; 4 who writes by a sequence; 5 a bit;
// 6 what is free, exchanged; 7 the owner's number, given by an exchange, 8 by a comparison; 9 something that is taken out
// and put back; 10 a spin lock, which is known by its form. Threads come one after another, so hardly any waits.
#include <atomic>
#include <pthread.h>
#include <sched.h>

#ifdef OUT
#define WAY __attribute__((noinline))
#else
#define WAY
#endif
static constexpr auto ACQUIRE = std::memory_order_acquire, RELEASE = std::memory_order_release;
static std::atomic<int> numbers;
static thread_local int me = 1 + numbers++;

struct Lock {
    long before[3];
#if KIND == 0 || KIND == 7 || KIND == 8
    std::atomic<int> owner{-1};
    WAY void take() {
        for (int none = -1; !owner.compare_exchange_weak(none, me, ACQUIRE); none = -1) sched_yield();
    }
#endif
#if KIND == 0
    WAY void give() { owner.store(-1, RELEASE); }
#elif KIND == 1
    std::atomic<int> is_free{1};
    WAY void take() {
        for (int one = 1; !is_free.compare_exchange_weak(one, 0, ACQUIRE); one = 1) sched_yield();
    }
    WAY void give() { is_free.store(1, RELEASE); }
#elif KIND == 2
    std::atomic<int> holders{0};
    WAY void take() {
        while (holders.fetch_add(1, ACQUIRE) != 0) {
            holders.fetch_sub(1);
            sched_yield();
        }
    }
    WAY void give() { holders.store(0, RELEASE); }
#elif KIND == 3
    std::atomic<int> count{1};
    WAY void take() {
        while (count.fetch_sub(1, ACQUIRE) != 1)
            while (count.load(std::memory_order_relaxed) <= 0) sched_yield();
    }
    WAY void give() { count.store(1, RELEASE); }
#elif KIND == 4
    std::atomic<unsigned> sequence{0};
    WAY void take() {
        for (;; sched_yield()) {
            unsigned before = sequence.load(std::memory_order_relaxed);
            if (before % 2 == 0 && sequence.compare_exchange_weak(before, before + 1, ACQUIRE)) return;
        }
    }
    WAY void give() { sequence.store(sequence.load(std::memory_order_relaxed) + 1, RELEASE); }
#elif KIND == 5
    std::atomic<unsigned long> bits{0x1000};
    WAY void take() {
        for (;; sched_yield()) {
            unsigned long free = bits.load() & ~1ul;
            if (bits.compare_exchange_strong(free, free | 1, ACQUIRE)) return;
        }
    }
    WAY void give() { bits.store(bits.load(std::memory_order_relaxed) & ~1ul, RELEASE); }
#elif KIND == 6
    std::atomic<int> is_free{1};
    WAY void take() {
        while (!is_free.exchange(0, ACQUIRE)) sched_yield();
    }
    WAY void give() { is_free.store(1, RELEASE); }
#elif KIND == 7
    WAY void give() { owner.store(-1); }
#elif KIND == 8
    WAY void give() {
        int mine = me;
        owner.compare_exchange_strong(mine, -1);
    }
#elif KIND == 9
    std::atomic<void *> place{&numbers};
    void *taken;
    WAY void take() {
        for (;; sched_yield()) {
            void *there = place.exchange(nullptr, ACQUIRE);
            if (!there) continue;
            taken = there;
            return;
        }
    }
    WAY void give() { place.store(taken, RELEASE); }
#else
    std::atomic<long> owner{0};
    WAY void take() {
        for (long none = 0; !owner.compare_exchange_strong(none, (long)&me); none = 0) sched_yield();
    }
    WAY void give() { owner.store(0, RELEASE); }
#endif
    long sum;
};
static Lock *locks[2];

static void *work(void *a) {
    for (volatile long delay = 0; delay < (long)a * 20000; delay = delay + 1) {
    }
    for (int round = 0; round < ROUNDS; round++) {
        Lock *lock = locks[round % 2];
        lock->take();
        for (int i = 0; i < 20000; i++) {
            lock->sum += i;
            __asm__ volatile("" ::: "memory");
        }
        lock->give();
    }
    return a;
}

int main() {
    for (Lock *&lock : locks) lock = new Lock();
    pthread_t threads[8];
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (pthread_t thread : threads) pthread_join(thread, 0);
}
