/* A loop over time around loops that a team shares. */
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        for (int t = 0; t < 6; t++) {
            LAUNCH(40 + t, mix(i + t));
            LAUNCH(30, mix(i * 3 + t));
        }
        return 0;
    }
    int n = 40 * c;
    double change = 0;
#pragma omp parallel shared(change, n)
    for (int t = 0; t < 6; t++) {
#pragma omp for reduction(+ : change)
        for (int i = 0; i < n; i++) {
            TURNS(mix(i + t));
            out[i] = i;
            change += out[i + 1];
        }
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 30 * c; i++) {
            TURNS(mix(i * 3 + t));
            out[i + 200] = i;
        }
#pragma omp single
        {
            n++;
            change *= 0.5;
        }
    }
    return change == 77;
}
