// A pool whose threads take packaged tasks from a queue: 200 items of four sizes, the smallest of WORK turns of a loop.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

class pool {
    std::deque<std::function<void()>> queue;
    std::mutex mutex;
    std::condition_variable filled;
    bool over = false;
    std::vector<std::thread> threads;

    void run() {
        for (;;) {
            std::function<void()> item;
            {
                std::unique_lock guard(mutex);
                filled.wait(guard, [this] { return over || !queue.empty(); });
                if (queue.empty())
                    return;
                item = std::move(queue.front());
                queue.pop_front();
            }
            item();
        }
    }

public:
    explicit pool(int n) {
        for (int i = 0; i < n; i++)
            threads.emplace_back([this] { run(); });
    }

    template <class F> std::future<long> put(F f) {
        auto task = std::make_shared<std::packaged_task<long()>>(f);
        {
            std::lock_guard guard(mutex);
            queue.emplace_back([task] { (*task)(); });
        }
        filled.notify_one();
        return task->get_future();
    }

    ~pool() {
        {
            std::lock_guard guard(mutex);
            over = true;
        }
        filled.notify_all();
        for (auto &thread : threads)
            thread.join();
    }
};

__attribute__((noinline)) static long inside(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += i * 3 ^ n;
    return sum;
}

int main() {
    std::vector<std::future<long>> results;
    long sum = 0;
    {
        pool workers(4);
        for (int i = 0; i < 200; i++)
            results.push_back(workers.put([i] { return inside(WORK * (1L + i % 4)); }));
        for (auto &result : results)
            sum += result.get();
    }
    printf("%ld\n", sum);
}
