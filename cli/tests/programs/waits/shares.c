// 8 threads take shares of a word, as readers do of a lock: each looks at it before any of them takes one, and none gives
// one before all have one. So the first tries of all but one fail, and those try again in a function of its own.
#include <pthread.h>

static pthread_barrier_t met;
static int word;

__attribute__((noinline, cold)) static void take_slowly(int *w) {
    for (;;) {
        int now = __atomic_load_n(w, __ATOMIC_RELAXED);
        if (now >= 0 && __atomic_compare_exchange_n(w, &now, now + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    }
}

__attribute__((noinline)) static void work(void) {
    for (int i = 0; i < 4000; i++) __asm__ volatile("" : : "r"(i));
}

static void *thread(void *w) {
    int now = __atomic_load_n((int *)w, __ATOMIC_RELAXED);
    pthread_barrier_wait(&met);
    if (!__atomic_compare_exchange_n((int *)w, &now, now + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) take_slowly(w);
    pthread_barrier_wait(&met);
    work();
    __atomic_fetch_sub((int *)w, 1, __ATOMIC_RELEASE);
    return 0;
}

int main(void) {
    pthread_t threads[8];
    pthread_barrier_init(&met, 0, 8);
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, thread, &word);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
}
