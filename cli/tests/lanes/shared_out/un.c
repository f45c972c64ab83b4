#include <stdio.h>
enum { N = 4096 };
static int key[N], out[N];
int main(void) {
    for (int i = 0; i < N; i++) key[i] = (i * 7919) % 3;
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        if (key[i])
            out[i] = key[i] * 3;
    printf("%d\n", out[27]);
}
