/* Threads of a team start teams of their own, side by side. */
// levels -O0 -O2
#include "marks.h"

__attribute__((noinline)) static void inner(int c, int which) {
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < 60 * c; i++) {
        TURNS(mix(i + which * 60));
        out[i + which * 64] = i;
    }
}

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(60, mix(i));
        LAUNCH(60, mix(i + 60));
        return 0;
    }
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    inner(c, omp_get_thread_num());
    return out[3] == 77;
}
