#include <stdio.h>
enum { N = 4096 };
static int out[N];
int main(void) {
#pragma omp target teams distribute parallel for      // or: parallel for
    for (int i = 0; i < N; i++) {
        int n = i, steps = 0;
        while (n > 1) {
            n = n % 2 ? 3 * n + 1 : n / 2;
            steps++;
        }
        out[i] = steps;
    }
    printf("%d\n", out[27]);
}
