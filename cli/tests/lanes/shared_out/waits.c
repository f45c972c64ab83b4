/* gcc -fopenmp, 4 threads. 64 iterations are lanes; in the turns of the other loop, which goes by thread numbers, the
   threads wait for each other: none of them is a lane, and that is said. */
#include <omp.h>
#include <stdio.h>

static double a[64], b[64];

int main(void)
{
#pragma omp parallel num_threads(4)
    {
#pragma omp for
        for (int i = 0; i < 64; i++)
            for (int k = 0; k < 10 + i % 2 * 90; k++)
                a[i] += k * 0.5;
        for (int i = omp_get_thread_num(); i < 64; i += omp_get_num_threads()) {
            for (int k = 0; k < 100; k++)
                b[i] += a[(i + k) % 64];
#pragma omp barrier
        }
    }
    printf("%g\n", a[3] + b[5]);
}
