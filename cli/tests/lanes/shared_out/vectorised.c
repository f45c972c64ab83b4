#include <stdio.h>
enum { N = 2048 };
static float a[N], out[N];
int main(void) {
    for (int i = 0; i < N; i++) a[i] = (float)((i * 7919) % 101);
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        float v = a[i];
        for (int j = 0; j < 20; j++) v = v * 0.5f + 1;
        out[i] = v;
    }
    printf("%f\n", out[7]);
}
