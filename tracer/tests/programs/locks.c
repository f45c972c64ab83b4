/* Three threads take a mutex four times each, meet at a barrier twice, and use each other kind of lock once. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int sum;

static void first(void) { sum += 100; }

static void *run(void *n) {
    for (int i = 0; i < 4; i++) {
        pthread_mutex_lock(&mutex);
        sum += (int)(long)n;
        pthread_mutex_unlock(&mutex);
    }
    pthread_barrier_wait(&barrier);
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_once(&once, first);
    pthread_barrier_wait(&barrier);
    sem_post(&semaphore);
    return n;
}

int main(void) {
    pthread_t threads[2];
    printf("%p %p %p %p\n", (void *)&mutex, (void *)&barrier, (void *)&semaphore, (void *)run);
    pthread_barrier_init(&barrier, 0, 3);
    pthread_spin_init(&spin, 0);
    sem_init(&semaphore, 0, 0);
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, run, (void *)(i + 1));
    run((void *)3);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 3; i++) sem_wait(&semaphore);
    pthread_cond_signal(&condition);
    return sum == 124 ? 0 : 1;
}
