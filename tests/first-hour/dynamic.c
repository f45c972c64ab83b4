// Iterations of different length that OpenMP deals out as threads come for them.
#include <stdio.h>

enum { ITEMS = 256 };
static unsigned out[ITEMS];

static int turns(int i) { return 20 + i * 37 % 64 * 10; }

int main(void) {
  int order[ITEMS];
  for (int i = 0; i < ITEMS; i++) order[i] = i;
#pragma omp parallel for schedule(dynamic) num_threads(8)
  for (int at = 0; at < ITEMS; at++) {
    int i = order[at];
    unsigned sum = i;
    for (int k = turns(i); k > 0; k--) sum = sum * 1664525u + (sum >> 16);
    out[i] = sum;
  }
  unsigned sum = 0;
  for (int i = 0; i < ITEMS; i++) sum ^= out[i];
  printf("%u\n", sum);
  return 0;
}
