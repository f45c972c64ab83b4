// Iterations that OpenMP deals out as threads come for them; the first thread to come takes the long one.
#include <stdio.h>

static long out[64];

int main(void) {
#pragma omp parallel for schedule(dynamic) num_threads(4)
  for (int i = 0; i < 64; i++) {
    long sum = 0;
    for (int k = 0; k < (i == 0 ? 400000 : 100); k++) sum += sum >> 3 ^ k;
    out[i] = sum;
  }
  long sum = 0;
  for (int i = 0; i < 64; i++) sum += out[i];
  printf("%ld\n", sum);
  return 0;
}
