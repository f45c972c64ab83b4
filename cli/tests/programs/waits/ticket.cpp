// A ticket lock of plain loads, at which hardly anybody ever waits: threads come one after another.
#include <atomic>
#include <pthread.h>

static std::atomic<int> tickets, serving;
static long sum;

static void *work(void *a) {
    for (volatile long delay = 0; delay < (long)a * 200000; delay = delay + 1) {
    }
    for (int round = 0; round < 2; round++) {
        int mine = tickets.fetch_add(1);
        while (serving.load(std::memory_order_acquire) != mine) {
        }
        for (int i = 0; i < 20000; i++) {
            sum += i;
            __asm__ volatile("" ::: "memory");
        }
        serving.store(mine + 1, std::memory_order_release);
    }
    return a;
}

int main() {
    pthread_t threads[8];
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
}
