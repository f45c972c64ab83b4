/* A loop shared by a team, whose iteration i makes 4 * i turns of an inner one. */
#include <stdio.h>

static int out[200];

__attribute__((noinline)) int turns(int n) {
    int x = 1;
    for (volatile int i = 0; i < 4 * n; i++) x = x * 5 + i;
    return x;
}

int main(void) {
    unsigned sum = 0;
#if defined(COLLAPSE)
#pragma omp parallel for collapse(2) schedule(COLLAPSE)
    for (int y = 0; y < 20; y++)
        for (int x = 0; x < 10; x++) out[10 * y + x] = turns(10 * y + x);
#elif defined(DOWN)
#pragma omp parallel for schedule(DOWN)
    for (int i = 199; i >= 0; i--) out[199 - i] = turns(199 - i);
#elif defined(UNSIGNED)
#pragma omp parallel for schedule(UNSIGNED)
    for (unsigned long i = 7; i < 607; i += 3) out[(i - 7) / 3] = turns((int)(i - 7) / 3);
#else
#pragma omp parallel for schedule(SCHEDULE)
    for (int i = 0; i < 200; i++) out[i] = turns(i);
#endif
    for (int i = 0; i < 200; i++) sum = sum * 3 + out[i];
    printf("%u\n", sum);
    return 0;
}
