// A pool of threads that take tasks from a common queue, one lock for all: what each thread runs is chance.
#include <condition_variable>
#include <functional>
#include <iostream>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

class Pool {
public:
    explicit Pool(int threads) {
        for (int i = 0; i < threads; i++) workers.emplace_back([this] { run(); });
    }
    ~Pool() {
        { std::lock_guard<std::mutex> hold(guard); done = true; }
        come.notify_all();
        for (auto &worker : workers) worker.join();
    }
    void add(std::function<void()> task) {
        { std::lock_guard<std::mutex> hold(guard); tasks.push(std::move(task)); }
        come.notify_one();
    }

private:
    void run() {
        for (;;) {
            std::function<void()> task;
            {
                std::unique_lock<std::mutex> hold(guard);
                come.wait(hold, [this] { return done || !tasks.empty(); });
                if (tasks.empty()) return;
                task = std::move(tasks.front());
                tasks.pop();
            }
            task();
        }
    }
    std::vector<std::thread> workers;
    std::queue<std::function<void()>> tasks;
    std::mutex guard;
    std::condition_variable come;
    bool done = false;
};

static long steps(int i) {
    return 20 + (i * 37 % 64) * 10;
}

static long mix(int i) {
    long n = i + 27, all = 0;
    // Long enough that others wake before one thread has taken all tasks, on a busy machine too.
    for (long k = 25 * steps(i); k > 0; k--) {
        n = n * 1103515245 + 12345;
        all += n >> 16;
    }
    return all;
}

int main() {
    std::vector<int> order(256);
    for (int i = 0; i < 256; i++) order[i] = i;
    std::vector<long> out(256);
    {
        Pool pool(8);
        for (int i : order) pool.add([i, &out] { out[i] = mix(i); });
    }
    long sum = 0;
    for (long v : out) sum += v;
    std::cout << sum << "\n";
}
