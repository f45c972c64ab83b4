// Eight threads share a list of 400 items under a lock; the first one that comes takes all of them, since the others
// begin when nothing is left. With SHORT an item is a few instructions, taken by a counter.
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 8, ITEMS = 400 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t done;
static int next;
static long out[ITEMS];

__attribute__((noinline)) static long item(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += sum ^ i;
    return sum;
}

static void *work(void *argument) {
    if (argument)
        pthread_barrier_wait(&done);
#ifdef SHORT
    for (int mine; (mine = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < ITEMS;)
        out[mine] = 3L * mine + 1;
#else
    for (;;) {
        pthread_mutex_lock(&lock);
        int mine = next++;
        pthread_mutex_unlock(&lock);
        if (mine >= ITEMS)
            break;
        out[mine] = item(200);
    }
#endif
    if (!argument)
        pthread_barrier_wait(&done);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&done, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (long i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", out[7]);
}
