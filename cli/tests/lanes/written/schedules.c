/* Schedules with modifiers, and a collapsed loop of three types. */
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(101, mix(i));
        LAUNCH(101, mix(i * 3));
        LAUNCH(101, mix(i * 5));
        LAUNCH(60, mix(i * 7));
        return 0;
    }
#pragma omp parallel for schedule(nonmonotonic : dynamic, 4) order(concurrent)
    for (int i = 0; i < 101 * c; i++) {
        TURNS(mix(i));
        out[i] = i;
    }
#pragma omp parallel for schedule(monotonic : guided)
    for (int i = 0; i < 101 * c; i++) {
        TURNS(mix(i * 3));
        out[i] = i;
    }
#pragma omp parallel for schedule(auto) num_threads(2)
    for (int i = 0; i < 101 * c; i++) {
        TURNS(mix(i * 5));
        out[i] = i;
    }
#pragma omp parallel for collapse(3) schedule(dynamic, 2)
    for (long z = 0; z < 3 * c; z++)
        for (int y = 8; y > 0; y -= 2)
            for (short x = 0; x < (short)(5 * c); x++) {
                int id = (z * 4 + (8 - y) / 2) * 5 + x;
                TURNS(mix(id * 7));
                out[id] = id;
            }
    return out[3] == 77;
}
