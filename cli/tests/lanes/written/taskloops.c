/* Taskloops of all kinds. */
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(97, mix(i));
        LAUNCH(64, mix(i * 3));
        LAUNCH(45, mix(i * 5));
        LAUNCH(48, mix(i * 9));
        return 0;
    }
    int sum = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop grainsize(8)
        for (int i = 0; i < 97 * c; i++) {
            TURNS(mix(i));
            out[i] = i;
        }
#pragma omp taskloop num_tasks(5) reduction(+ : sum)
        for (int i = 0; i < 64 * c; i++) {
            TURNS(mix(i * 3));
            sum += i;
        }
#pragma omp taskgroup task_reduction(+ : sum)
        {
#pragma omp taskloop in_reduction(+ : sum) grainsize(6) nogroup
            for (long i = 0; i < 45 * c; i++) {
                TURNS(mix(i * 5));
                sum += i;
            }
        }
    }
#pragma omp parallel master taskloop collapse(2)
    for (int y = 0; y < 6 * c; y++)
        for (int x = 0; x < 8 * c; x++) {
            TURNS(mix((y * 8 + x) * 9));
            out[y * 8 + x] += x;
        }
    return sum == 77;
}
