// Threads take a number under a lock, and those that take theirs later have more to do.
#include <pthread.h>

enum { THREADS = 32 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int taken, results[THREADS];

static void *run(void *argument) {
    long thread = (long)argument;
    pthread_mutex_lock(&lock);
    taken++;
    pthread_mutex_unlock(&lock);
    int x = 1;
    for (int i = 0; i < 1000 + thread * 20; i++)
        x = x * 3 + (x >> 3);
    results[thread] = x;
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return taken == THREADS ? 0 : 1;
}
