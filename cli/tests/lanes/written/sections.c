/* Sections, and what one thread does alone, are no iterations, though clang's runtime deals them out alike. */
// levels -O0 -O2
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(97, mix(i));
        return 0;
    }
    int n = 97 * c;
#pragma omp parallel
    {
#pragma omp sections
        {
#pragma omp section
            for (int i = 0; i < n; i++) out[i] += i;
#pragma omp section
            for (int i = 0; i < n; i++) {
                TURNS(3);
                out[i + 1000] += i;
            }
        }
#pragma omp for
        for (int i = 0; i < n; i++) {
            TURNS(mix(i));
            out[i] = i;
        }
#pragma omp master
        for (int i = 0; i < n; i++) {
            TURNS(3);
            out[i + 1000] += i;
        }
    }
    return out[3] == 77;
}
