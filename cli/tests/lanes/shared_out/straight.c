// N iterations that run straight through, of which compilers make one turn of a loop several, unrolled or as vectors.
// Right: N lanes, which run very well.
#include <stdio.h>

static int idx[N + 2];
static float x[N + 2], y[N + 2];
static double out[N + 2];
static struct {
    double x, y, z;
} p[N], v[N];

int main(void) {
    double sum = 0;
    unsigned hash = 1;
    for (int i = 0; i < N; i++) idx[i] = i * 7 % N, x[i] = i % 11, v[i].x = i % 3;
#pragma omp parallel for SCHEDULE reduction(+ : sum) reduction(^ : hash)
    for (int i = 0; i < N; i++) {
#if K == 0
        out[idx[i]] = x[i] * 2.0 + 1;
#elif K == 1
        sum += x[i] * y[i];
#elif K == 2
        hash = (hash ^ (unsigned)idx[i]) * 16777619u;
#elif K == 3
        out[i] = x[idx[i]] + x[idx[i + 1]] * x[idx[i + 2]];
#elif K == 4
        y[i] = 2.5f * x[i] + y[i];
#elif K == 5
        p[i].x = x[i], p[i].y = y[i];
#else
        p[i].x += v[i].x * 0.1, p[i].y += v[i].y * 0.1, p[i].z += v[i].z * 0.1 / p[i].x;
#endif
    }
    printf("%g %u %g %g\n", sum, hash, out[7], p[7].z + y[7]);
}
