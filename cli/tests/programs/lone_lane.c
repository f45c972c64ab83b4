// Between two barriers one lane alone updates a table, while the others wait.
#include <pthread.h>
#include <stdio.h>

enum { LANES = 16, ENTRIES = 128, ROUNDS = 4 };

static unsigned table[ENTRIES], out[LANES];
static pthread_barrier_t barrier;

static void *work(void *arg) {
  long id = (long)arg;
  unsigned x = 12345u + (unsigned)id;
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < 4 * ENTRIES; i++) x = x * 1664525u + 1013904223u + table[i % ENTRIES];
    pthread_barrier_wait(&barrier);
    if (id == 0) // the branch
      for (int i = 0; i < ENTRIES; i++)
        for (int k = 0; k < 4; k++) table[i] = table[i] * 69069u + (table[i] >> 3) + (unsigned)(round + k);
    pthread_barrier_wait(&barrier);
  }
  out[id] = x;
  return 0;
}

int main(void) {
  pthread_t threads[LANES];
  pthread_barrier_init(&barrier, 0, LANES);
  for (long i = 0; i < LANES; i++) pthread_create(&threads[i], 0, work, (void *)i);
  for (int i = 0; i < LANES; i++) pthread_join(threads[i], 0);
  unsigned sum = 0;
  for (int i = 0; i < LANES; i++) sum += out[i];
  printf("%u\n", sum);
  return 0;
}
