#include <stdio.h>
enum { N = 2048 };
static float a[N]; static float m;
int main(void) {
    for (int i = 0; i < N; i++) a[i] = (float)((i * 7919) % 101);
#pragma omp parallel for reduction(max : m)
    for (int i = 0; i < N; i++) {
        float v = a[i] * 3;
        for (int j = 0; j < 20; j++) v = v * 0.5f + 1;
        m = v > m ? v : m;
    }
    printf("%f\n", m);
}
