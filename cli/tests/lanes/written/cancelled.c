/* An iteration ends the loop, for all threads: which others run is chance. */
// env OMP_CANCELLATION=true
// levels -O0 -O2
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(120, mix(i));
        return 0;
    }
#pragma omp parallel num_threads(4)
#pragma omp for schedule(dynamic, 2)
    for (int i = 0; i < 120 * c; i++) {
        TURNS(mix(i));
        out[i] = i;
        if (i == 60) {
#pragma omp cancel for
        }
#pragma omp cancellation point for
    }
    return out[3] == 77;
}
