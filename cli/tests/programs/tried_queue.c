// 4 threads take 128 items under a lock that is hardly ever free. They wait for it in a loop that has one head with the
// loop around it: with FLAG for a flag that they compare, else for a mutex that they try. With TESTED there are copies of
// a loop's test, as compilers make them: for who comes first or by a `continue`, and at the end of a turn.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { THREADS = 4, ITEMS = 128 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int flag;
int lasts = 1;
static int taken;
static volatile int sums[ITEMS];

__attribute__((noinline)) static void hold(void) {
    struct timespec until_others_wait = {0, 100000};
    nanosleep(&until_others_wait, 0);
}

__attribute__((noinline)) static void work(int item) {
    for (int i = 0; i < 50 + item % 7 * 10; i++) sums[item] += i;
}

// The compiler leaves each copy where it stands.
#define IF_DONE(label) __asm__ goto("cmpl $0, lasts(%%rip); je %l[" #label "]" : : : "memory", "cc" : label)

static void *take_all(void *argument) {
#ifdef TESTED
    int item;
again:
    IF_DONE(none);
turn:
    pthread_mutex_lock(&mutex);
    item = taken++;
    if (item >= ITEMS) lasts = 0;
    pthread_mutex_unlock(&mutex);
    IF_DONE(again);
    work(item);
    sched_yield();
    IF_DONE(none); // the end of a turn
    goto turn;
none:;
#else
    for (;;) {
#ifdef FLAG
        for (int none = 0; !atomic_compare_exchange_weak(&flag, &none, 1); none = 0) sched_yield();
#else
        while (pthread_mutex_trylock(&mutex)) sched_yield();
#endif
        hold();
        int item = taken++;
#ifdef FLAG
        atomic_store_explicit(&flag, 0, memory_order_release);
#else
        pthread_mutex_unlock(&mutex);
#endif
        if (item >= ITEMS) break;
        work(item);
    }
#endif
    return argument;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, take_all, 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
}
