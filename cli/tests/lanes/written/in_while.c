/* Rounds over a list that shrinks, as of a search in breadth. */
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        for (int n = 50; n > 3; n = n * 2 / 3) LAUNCH(n, mix(i + n));
        return 0;
    }
    int n = 50 * c;
#pragma omp parallel
    while (1) {
        int now = n;
#pragma omp for schedule(static, 3)
        for (int i = 0; i < now; i++) {
            TURNS(mix(i + now));
            out[i] = i;
        }
#pragma omp single
        n = n * 2 / 3;
        if (n <= 3) break;
    }
    return out[3] == 77;
}
