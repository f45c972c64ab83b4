// Waits of C++'s library (KIND) on LANES threads: 0 a barrier, 1 a latch for each round; 2 a semaphore of one place,
// 3 turns by std::atomic::wait; 4 a shared mutex, 5 one with a time limit, tried first, 6 a lock made of a mutex and a
// condition variable; 7 queues of that kind, by which each thread hands on to the next. In each of ROUNDS rounds of 0 and
// 1 one thread works, and the others wait for it.
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
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

#if KIND == 4
static std::shared_mutex lock;
static void take() { lock.lock(); }
static void give() { lock.unlock(); }
#elif KIND == 5
static std::timed_mutex lock;
static void take() {
    if (!lock.try_lock()) lock.lock();
}
static void give() { lock.unlock(); }
#elif KIND == 6
static std::mutex of_flag;
static std::condition_variable free_again;
static bool is_taken;
static void take() {
    std::unique_lock<std::mutex> guard(of_flag);
    while (is_taken) free_again.wait(guard);
    is_taken = true;
}
static void give() {
    std::lock_guard<std::mutex> guard(of_flag);
    is_taken = false;
    free_again.notify_one();
}
#elif KIND == 7
static struct {
    std::mutex of_count;
    std::condition_variable is_any;
    int count;
} queues[LANES];
static void receive(int id) {
    std::unique_lock<std::mutex> guard(queues[id].of_count);
    while (!queues[id].count) queues[id].is_any.wait(guard);
    queues[id].count--;
}
static void send(int id) {
    std::lock_guard<std::mutex> guard(queues[id].of_count);
    queues[id].count++;
    queues[id].is_any.notify_one();
}
#endif

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
#elif KIND == 3
    // In no order in which threads are likely to begin: some have to wait.
    for (int now; (now = turn.load()) != id * 3 % LANES;) turn.wait(now);
    mine += inside(WORK);
    turn++;
    turn.notify_all();
#elif KIND <= 6
    for (int round = 0; round < 4; round++) {
        take();
        mine += inside(WORK / 4);
        give();
    }
#else
    if (id > 0) receive(id);
    mine += inside(WORK);
    if (id + 1 < LANES) send(id + 1);
#endif
}

int main() {
    for (int round = 0; round < ROUNDS; round++) latches.push_back(std::make_unique<std::latch>(LANES));
    std::vector<std::thread> threads;
    for (int id = 0; id < LANES; id++) threads.emplace_back(work, id);
    for (std::thread &thread : threads) thread.join();
}
