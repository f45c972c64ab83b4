// 200 tasks of four sizes, made by one thread. gcc runs them at the barrier behind the body of the region, clang inside.
#include <omp.h>
#include <stdio.h>

__attribute__((noinline)) static long inside(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += sum ^ i;
    return sum;
}

static long out[200];

int main(void) {
#pragma omp parallel num_threads(8)
#pragma omp single
    for (int i = 0; i < 200; i++) {
#pragma omp task
        out[i] = inside(500 + i % 4 * 500);
    }
    printf("%ld\n", out[7]);
}
