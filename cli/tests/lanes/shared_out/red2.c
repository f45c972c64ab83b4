#include <stdio.h>
enum { N = 1024 };
static float a[N];
static float s, m;
static void work(int shift) {
#pragma omp parallel for reduction(max : m) reduction(+ : s)
    for (int i = 0; i < N; i++) {
        float v = a[i] * shift;
        for (int j = 0; j < 20; j++)
            v = v * 0.5f + 1;
        m = v > m ? v : m;
        s += v;
    }
}
int main(void) {
    for (int i = 0; i < N; i++) a[i] = i;
    work(1); work(2);
    printf("%f %f\n", s, m);
}
