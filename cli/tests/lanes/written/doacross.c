/* Iterations wait for earlier ones, whose numbers they name. */
// levels -O0 -O2 -O3
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(50, mix(i));
        LAUNCH(41, mix(i * 3));
        return 0;
    }
#pragma omp parallel for ordered(1) schedule(static, 2)
    for (int i = 0; i < 50 * c; i++) {
        TURNS(mix(i));
#pragma omp ordered depend(sink : i - 1)
        out[i + 1] = out[i] + 1;
#pragma omp ordered depend(source)
    }
#pragma omp parallel for ordered(2) schedule(dynamic, 3)
    for (int i = 0; i < 41 * c; i++)
        for (int k = 0; k < 3; k++) {
            if (k == 0) TURNS(mix(i * 3));
#pragma omp ordered depend(sink : i - 1, k)
            out[i + 1] = out[i] + 1;
#pragma omp ordered depend(source)
        }
    return out[3] == 77;
}
