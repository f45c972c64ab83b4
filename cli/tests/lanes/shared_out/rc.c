#include <stdio.h>
enum { N = 1024 };
static float a[N];
int main(void) {
    float m = 0;
    for (int i = 0; i < N; i++) a[i] = (i * 7919) % 97;
#pragma omp target teams distribute parallel for reduction(max : m)
    for (int i = 0; i < N; i++) {
        float v = a[i];
        for (int j = 0; j < (int)a[i]; j++) v = v * 0.5f + 1;
        m = v > m ? v : m;
    }
    printf("%f\n", m);
}
