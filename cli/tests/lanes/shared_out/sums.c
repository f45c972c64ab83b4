// Each of 90,000 iterations only adds to sums, and writes nowhere. Right: 90,000 lanes, 100%.
#include <stdio.h>

enum { N = 300 };
static double a[N * N], e[N];

int main(int argc, char **argv) {
    int n = N * argc;
    double s = 0, t = 0;
    for (int i = 0; i < N * N; i++) a[i] = i % 7, e[i % N] = i % N;
#pragma omp parallel for collapse(2) reduction(+ : s, t)
    for (int b = 0; b < n; b++)
        for (int c = 0; c < n; c++) {
            double d = 1.0 / (e[b] + e[c] + 3);
            s += d * a[b * n + c];
            t += d * a[c * n + b];
        }
    printf("%g %g\n", s, t);
}
