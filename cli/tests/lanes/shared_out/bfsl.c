#include <stdio.h>
#include <stdlib.h>
enum { N = 4096 };
static char mask[N]; static int first[N + 1], to[16 * N]; static char seen[N]; static int cost[N];
static void level(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        if (mask[i])
            for (int e = first[i]; e < first[i + 1]; e++)
                if (!seen[to[e]]) cost[to[e]] = cost[i] + 1;
}
int main(void) {
    for (int i = 0; i < N; i++) { first[i + 1] = first[i] + 1 + rand() % 15; mask[i] = rand() % 4 == 0; seen[i] = rand() % 2; }
    for (int i = 0; i < first[N]; i++) to[i] = rand() % N;
    level();
    level();
    printf("%d\n", cost[5]);
}
