/* Threads take iterations by their numbers, without a worksharing loop. */
// levels -O0 -O2
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(101, mix(i));
        LAUNCH(97, mix(i * 3));
        return 0;
    }
    int n = 101 * c, m = 97 * c;
#pragma omp parallel
    for (int i = omp_get_thread_num(); i < n; i += omp_get_num_threads()) {
        TURNS(mix(i));
        out[i] = i;
    }
#pragma omp parallel
    {
        int thread = omp_get_thread_num(), threads = omp_get_num_threads(), each = (m + threads - 1) / threads;
        int first = thread * each, end = first + each < m ? first + each : m;
        for (int i = first; i < end; i++) {
            TURNS(mix(i * 3));
            out[i] = i;
        }
    }
    return out[3] == 77;
}
