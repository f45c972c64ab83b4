// All threads work out the same sum of sines, then share out 256 iterations that only copy. Right: 256 lanes, and that
// they are next to nothing of the program.
#include <math.h>
#include <stdio.h>

enum { N = 256 };
static double from[N], to[N], sums[64];

int main(int argc, char **argv) {
    for (int i = 0; i < N; i++) from[i] = i * argc;
#pragma omp parallel
    {
        double sum = 0;
        for (int k = 0; k < 20000; k++) sum += sin(k * 0.5 * argc);
        sums[(long)sum & 63] = sum;
#pragma omp for
        for (int i = 0; i < N; i++) to[i] = from[i] > 0 ? sqrt(from[i]) : from[i];
    }
    printf("%g %g\n", to[7], sums[7]);
}
