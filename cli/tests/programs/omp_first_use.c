// Equal work. The OpenMP runtime allocates something the first time that one of the lanes comes to a construct: that is
// none of the program's.
#include <omp.h>
#include <stdio.h>

static long out[8], seen;

__attribute__((noinline)) static long inside(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += sum ^ i;
    return sum;
}

int main(int argc, char **argv) {
    (void)argv;
#pragma omp parallel num_threads(8)
    {
        int thread = omp_get_thread_num();
#pragma omp for ordered schedule(static, 1)
        for (int i = 0; i < 8; i++)
            out[thread] += inside(2000 * argc);
        out[thread] += inside(20000 * argc);
#pragma omp atomic
        seen++;
    }
    printf("%ld %ld\n", out[3], seen);
}
