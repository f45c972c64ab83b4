/* The first and the last iteration do something else. */
// levels -O3
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(64, i == 0 ? 2 : i == 63 ? 5 : mix(i));
        LAUNCH(50, i == 0 ? 1 : mix(i * 3));
        return 0;
    }
    int n = 64 * c;
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        if (i == 0) {
            TURNS(2);
            out[0] = out[1];
        } else if (i == n - 1) {
            TURNS(5);
            out[i] = out[i - 1];
        } else {
            TURNS(mix(i));
            out[i] = out[i - 1] + out[i + 1];
        }
    }
#pragma omp parallel for schedule(dynamic, 5)
    for (int i = 0; i < 50 * c; i++) {
        if (i == 0)
            TURNS(1);
        else
            TURNS(mix(i * 3));
        out[i] = i;
    }
    return out[3] == 77;
}
