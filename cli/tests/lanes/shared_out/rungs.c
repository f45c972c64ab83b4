// Two loops of 10 iterations in one region: gcc -O3 makes no loop of the first, whose array says how many there are at
// most, but 10 iterations one behind the other. Right: 20 lanes, or no verdict.
#include <stdio.h>

static double sums[10];

__attribute__((noinline)) double work(int of) {
    volatile double sum = 0;
    for (int k = 1; k < 40 + of; k++) sum += 1.0 / k;
    return sum;
}

int main(int argc, char **argv) {
    int n = argc + 9, numbers[10];
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < n; i++) {
            numbers[i] = i;
            work(i);
        }
#pragma omp for
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int k = 0; k < 2; k++) sum += work(i) * k;
            ((volatile double *)sums)[numbers[i]] += sum;
        }
    }
    printf("%g\n", sums[3]);
}
