// Each thread works, and before that does what takes locks of the C library: it asks for memory, and has an object that
// is destroyed at its end.
#include <cstdlib>
#include <pthread.h>

struct Counter {
    long value = 1;
    ~Counter() { value = 0; }
};

static thread_local Counter counter;
static long totals[8];

static void *work(void *a) {
    long id = (long)a;
    long *total = (long *)malloc(sizeof(long));
    *total = counter.value++;
    for (long i = 0; i < 200000; i++) {
        *total += *total ^ i;
        __asm__ volatile("" ::: "memory");
    }
    totals[id] = *total;
    free(total);
    return a;
}

int main() {
    pthread_t threads[8];
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
}
