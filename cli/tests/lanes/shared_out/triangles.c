// Inner loops that begin or end by the iteration's number, as in triangles of matrices: they are no chunks of iterations.
// With FEW each thread has one iteration at most, and nothing in the code that ran says that the inner loop is not it.
#include <stdio.h>

static double a[100][100], sums[100];
static unsigned key[4096], out[4096];

int main(int argc, char **argv) {
    int n = 100 * argc;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            a[i][j] = i + j;
        }
    }
#ifdef FEW
#pragma omp parallel for
    for (int i = 0; i < 3; i++) {
        unsigned row = i, sum = 0;
        for (unsigned j = row * 3; j < row * 3 + 3; j++) {
            __asm__ volatile("nop");
            sum += key[j & 4095];
        }
        out[row & 4095] = sum;
    }
    printf("%u\n", out[1]);
#else
#pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = i; j < n; j++) {
            sum += a[i][j];
        }
        sums[i] = sum;
    }
#pragma omp parallel for schedule(static, 4)
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            if (a[j][i] > 50) {
                sums[i] += a[i][j];
            }
        }
    }
#endif
    printf("%g\n", sums[2]);
    return 0;
}
