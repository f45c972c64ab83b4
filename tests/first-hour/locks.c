// Threads that count into one histogram under one lock.
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 32, BUCKETS = 64, ITEMS = 1 << 16 };
static long all[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned data[ITEMS];

static void *count(void *arg) {
  long id = (long)arg, each = ITEMS / THREADS;
  long *buckets = all;
  for (long i = id * each; i < (id + 1) * each; i++) {
    unsigned v = data[i];
    v ^= v >> 7;
    v *= 2654435761u;
    pthread_mutex_lock(&lock);
    buckets[v % BUCKETS] += v & 3;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < ITEMS; i++) data[i] = (unsigned)i * 7919u;
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, count, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  long sum = 0;
  for (int i = 0; i < BUCKETS; i++) sum += all[i] * i;
  printf("%ld\n", sum);
  return 0;
}
