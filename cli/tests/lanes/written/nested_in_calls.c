/* The same in a function that an iteration calls: parts of each iteration run on another thread. */
#include "marks.h"

__attribute__((noinline)) static void row(int at, int c) {
#pragma omp parallel for num_threads(2)
    for (int k = 0; k < 6 * c; k++) {
        TURNS(mix(at + 100 * k));
        out[at * 6 + k] = at;
    }
}

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(16, mix(i) + mix(i + 100) + mix(i + 200) + mix(i + 300) + mix(i + 400) + mix(i + 500));
        return 0;
    }
    omp_set_max_active_levels(2);
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < 16 * c; i++) row(i, c);
    return out[3] == 77;
}
