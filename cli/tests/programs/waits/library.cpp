// Waits of C++20's library (KIND) on LANES threads: 0 a barrier, 1 a latch for each round; 2 a semaphore of one place,
// 3 turns by std::atomic::wait. In each of ROUNDS rounds of 0 and 1 one thread works, and the others wait for it.
#include <atomic>
#include <barrier>
#include <latch>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

enum { LANES = 8, WORK = 8000, ROUNDS = 16 };

__attribute__((noinline)) static long inside(long turns) {
    long s = 0;
    for (long i = 0; i < turns; i++) {
        s += s ^ i;
        __asm__ volatile("" : "+r"(s));
    }
    return s;
}

static std::barrier<> barrier(LANES);
static std::vector<std::unique_ptr<std::latch>> latches;
static std::binary_semaphore semaphore(1);
static std::atomic<int> turn;
static long own[LANES * 16];

static void work(int id) {
    long &mine = own[id * 16];
#if KIND <= 1
    for (int round = 0; round < ROUNDS; round++) {
        if (round % LANES == id) mine += inside(WORK);
#if KIND == 0
        barrier.arrive_and_wait();
#else
        latches[round]->arrive_and_wait();
#endif
    }
#elif KIND == 2
    semaphore.acquire();
    mine += inside(WORK);
    semaphore.release();
#else
    // In no order in which threads are likely to begin: some have to wait.
    for (int now; (now = turn.load()) != id * 3 % LANES;) turn.wait(now);
    mine += inside(WORK);
    turn++;
    turn.notify_all();
#endif
}

int main() {
    for (int round = 0; round < ROUNDS; round++) latches.push_back(std::make_unique<std::latch>(LANES));
    std::vector<std::thread> threads;
    for (int id = 0; id < LANES; id++) threads.emplace_back(work, id);
    for (std::thread &thread : threads) thread.join();
}
