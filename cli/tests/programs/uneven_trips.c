// A loop with an `if` in it, which lanes turn differently often: the loop costs more than the `if`.
#include <pthread.h>
#include <stdio.h>

static long out[32];

static void *work(void *arg) {
  long id = (long)arg;
  unsigned x = 12345u + (unsigned)id * 977u;
  long sum = 0;
  int trips = 200 + (int)(id % 8) * 150;
  for (int i = 0; i < trips; i++) { // the loop
    x = x * 1664525u + 1013904223u;
    if (x & 0x10000) { // the branch
      sum += x >> 7;
      sum ^= sum << 3;
      sum += i;
      sum *= 3;
    }
    sum += x >> 3;
  }
  out[id] = sum;
  return 0;
}

int main(void) {
  pthread_t threads[32];
  for (long i = 0; i < 32; i++) pthread_create(&threads[i], 0, work, (void *)i);
  for (int i = 0; i < 32; i++) pthread_join(threads[i], 0);
  long sum = 0;
  for (int i = 0; i < 32; i++) sum += out[i];
  printf("%ld\n", sum);
  return 0;
}
