// Each thread has 32 iterations of 50 turns: the first of them comes to the loop by another way than those behind it.
// Right: 128 lanes, 100%.
#include <stdio.h>
#include <stdlib.h>

enum { N = 128 };

int main(int argc, char **argv) {
    int n = 50 * argc;
    int *pages = calloc(N * N, sizeof *pages);
    unsigned *links = calloc(N, sizeof *links);
    float *maps = calloc(N * N, sizeof *maps), *ranks = calloc(N, sizeof *ranks);
    for (int i = 0; i < N; i++) ranks[i] = i + 1, links[i] = i % 5 + 1;
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        float out = ranks[i] / (float)links[i];
        for (int j = 0; j < n; ++j) maps[(size_t)i * n + j] = pages[(size_t)i * n + j] * out;
    }
    printf("%g\n", maps[7]);
}
