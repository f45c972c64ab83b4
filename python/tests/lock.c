// Eight threads that take one lock again and again: models with a stack deadlock.
#include <pthread.h>

enum { THREADS = 8, TURNS = 50 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void *work(void *argument) {
    for (long i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&lock);
        sum += i * (long)argument;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (long i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
