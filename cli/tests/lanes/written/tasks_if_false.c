/* Tasks that run where they are made, with others in them and beside them. */
// lanes tasks
// levels -O0 -O2
#include "marks.h"

static void make(int i, int c) {
#pragma omp task if (c > 5) firstprivate(i)
    {
        TURNS(mix(i));
        out[i] = i;
#pragma omp task if (0) firstprivate(i)
        {
            TURNS(mix(i * 3));
            out[i + 100] = i;
        }
        out[i] += 2;
#pragma omp task firstprivate(i)
        {
            TURNS(mix(i * 5));
            out[i + 200] = i;
        }
#pragma omp taskwait
        TURNS(2);
    }
}

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(120, i % 3 == 0 ? mix(i / 3) + 2 : i % 3 == 1 ? mix(i / 3 * 3) : mix(i / 3 * 5));
        return 0;
    }
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 40 * c; i++) make(i, c);
    return out[3] == 77;
}
