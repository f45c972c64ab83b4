// Two loops in one region: gcc -O3 makes vectors of the first, and a rest; the second begins behind a barrier, and each
// of its turns is an iteration. Right: 4 x 1003 lanes of the second.
#include <stdio.h>

enum { N = 1003 };
static double force[3 * N];
static int count[N];

int main(void) {
    double sum = 0;
    for (int i = 0; i < N; i++) count[i] = 5 + i % 32;
    for (int step = 0; step < 4; step++) {
#pragma omp parallel
        {
#pragma omp for
            for (int i = 0; i < N; i++) {
                force[3 * i] = 0;
                force[3 * i + 1] = 0;
                force[3 * i + 2] = 0;
            }
#pragma omp for
            for (int i = 0; i < N; i++)
                for (int k = 0; k < count[i]; k++) force[3 * i + k % 3] += 1.0 / (i + k + 1);
        }
        sum += force[step];
    }
    printf("%g\n", sum);
}
