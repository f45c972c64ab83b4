/* Two parallel regions of three threads, with a barrier, a critical section and a single in the first. */
#include <omp.h>
#include <stdio.h>

int main(void) {
    int sum = 0, singles = 0;
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
    return 0;
}
