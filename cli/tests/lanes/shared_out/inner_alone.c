// Each of 512 iterations has a parallel region of its own, which one thread runs, since there is one around it. Right:
// 512 lanes; of two next to each other one has a third of the other's turns, so two thirds, and less what is around.
#include <stdio.h>
#include <stdlib.h>

enum { N = 512 };
int out[N];

int main(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        int turns = i % 2 ? 90 : 30, s = 0;
#pragma omp parallel for reduction(+ : s)
        for (int k = 0; k < turns; k++) s += (i ^ k) % 7;
        out[i] = s;
    }
    printf("%d\n", out[rand() % N]);
}
