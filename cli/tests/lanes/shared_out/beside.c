// A loop of 4,096 iterations of which clang makes vectors that choose by masks, beside 1,024 that are nearly all of the
// work, and whose lanes turn 1 to 32 times. Right: 1,024 lanes (gcc: 5,120), about half.
#include <stdio.h>

enum { N = 4096, ITEMS = 1024 };
static float table[N], out[ITEMS];

int main(int argc, char **argv) {
#pragma omp parallel for
    for (int i = 0; i < N; i++) table[i] = table[i] > 1 ? 2.0f - i : 0.5f * i;
#pragma omp parallel for
    for (int i = 0; i < ITEMS; i++) {
        float sum = 0;
        for (int k = 0; k < 16 * (i % 32 + 1); k++) sum = sum * 0.5f + table[(i + k * argc) % N];
        out[i] = sum;
    }
    printf("%g\n", out[7]);
}
