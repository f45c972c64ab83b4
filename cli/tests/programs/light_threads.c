// Threads that do next to nothing, beside a main thread that does nearly all.
#include <pthread.h>
#include <stdio.h>

static volatile long out[8];

static void *tick(void *arg) {
  out[(long)arg] = (long)arg * 3;
  return 0;
}

int main(void) {
  pthread_t threads[8];
  double sum = 0;
  for (int i = 1; i < 100000; i++) sum += 1.0 / i;
  for (long i = 0; i < 8; i++) pthread_create(&threads[i], 0, tick, (void *)i);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
  printf("%f %ld\n", sum, out[3]);
  return 0;
}
