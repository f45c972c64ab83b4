// Threads share out 4,096 iterations by their numbers; then one of them adds up what all have found, which nobody
// shares. Right: 4,096 lanes, 87%: those whose target is not 3 do more.
#include <omp.h>
#include <stdio.h>

enum { N = 4096, MOST = 64 };
static int target[N];
static float weights[8], input[N * 8], loss[MOST], all[MOST];

int main(int argc, char **argv) {
    float total = 0, weight = 0;
    for (int i = 0; i < N; i++) target[i] = i * 7 % 8;
    for (int i = 0; i < 8; i++) weights[i] = i;
#pragma omp parallel
    {
        int id = omp_get_thread_num(), threads = omp_get_num_threads();
        for (int i = id; i < N * argc; i += threads) {
            int t = target[i];
            if (t != 3) {
                loss[id] -= input[i * 8 + t] * weights[t];
                all[id] += weights[t];
            }
        }
#pragma omp barrier
        if (id == 0)
            for (int i = 0; i < threads; i++) total += loss[i], weight += all[i];
    }
    printf("%g %g\n", total, weight);
}
