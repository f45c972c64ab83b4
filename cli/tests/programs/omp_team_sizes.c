// Regions of eight threads and of four by turns, with equal work inside of each: eight lanes.
#include <omp.h>
#include <stdio.h>

__attribute__((noinline)) static long inside(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += sum ^ i;
    return sum;
}

static long out[8];

int main(int argc, char **argv) {
    (void)argv;
    for (int round = 0; round < 5; round++) {
#pragma omp parallel num_threads(8)
        out[omp_get_thread_num()] += inside(1000 * argc);
#pragma omp parallel num_threads(4)
        out[omp_get_thread_num()] += inside(1000 * argc);
    }
    printf("%ld\n", out[0]);
}
