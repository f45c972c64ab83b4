// One thread does more before the loop that all share out, which stands in a function of its own. Right: 1,024 lanes,
// 100%.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1024 };
static int from[N], to[N], first;

__attribute__((noinline)) static void share(int by) {
#pragma omp for
    for (int i = 0; i < N; i++) to[i] = from[i] * by + from[(i + by) % N];
}

int main(int argc, char **argv) {
    for (int i = 0; i < N; i++) from[i] = rand() % 7;
#pragma omp parallel
    {
#pragma omp master
        for (int i = 0; i < 5000 * argc; i++) first += from[i % N] ^ i;
        share(argc);
    }
    printf("%d %d\n", first, to[7]);
}
