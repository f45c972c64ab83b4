/* Two parallel regions of three threads, with a barrier, a critical section and a single in the first. */
#include <omp.h>
#include <stdio.h>

#include "without_end.h"

/* Of clang's library: how long idle threads spin, in milliseconds. Of millions of instructions `step` would have to record each. */
void kmp_set_blocktime(int) __attribute__((weak));

int main(void) {
    int sum = 0, singles = 0;
    if (kmp_set_blocktime) kmp_set_blocktime(0);
#pragma omp parallel num_threads(3) reduction(+ : sum)
    {
        sum += omp_get_thread_num();
#pragma omp barrier
#pragma omp critical
        sum += 10;
#pragma omp single
        singles++;
    }
#pragma omp parallel num_threads(3) reduction(+ : sum)
    sum += 100;
    printf("%d %d\n", sum, singles);
    end_without_libraries();
}
