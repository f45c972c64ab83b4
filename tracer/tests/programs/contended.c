/* Four threads take three mutexes and a lock for writing in turn, again and again. */
#include <pthread.h>

static pthread_mutex_t mutexes[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t other = PTHREAD_RWLOCK_INITIALIZER;
static unsigned long sum;

static void *run(void *n) {
    for (unsigned long i = (unsigned long)n; i < 5000; i++) {
        pthread_mutex_lock(&mutexes[i % 3]);
        pthread_rwlock_wrlock(&other);
        sum += i;
        pthread_rwlock_unlock(&other);
        pthread_mutex_unlock(&mutexes[i % 3]);
    }
    return 0;
}

int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, run, (void *)i);
    run((void *)3);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return sum == 4 * (4999ul * 5000 / 2) - 1 - 3 ? 0 : 1;
}
