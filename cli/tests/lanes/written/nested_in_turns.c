/* Each iteration of a loop that a team shares starts another team: the inner loop's iterations are lanes. */
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        for (int row = 0; row < 6; row++) LAUNCH(20, mix(row + 100 * i));
        return 0;
    }
    omp_set_max_active_levels(2);
#pragma omp parallel for num_threads(3)
    for (int row = 0; row < 6 * c; row++) {
#pragma omp parallel for num_threads(2)
        for (int k = 0; k < 20 * c; k++) {
            TURNS(mix(row + 100 * k));
            out[row * 20 + k] = row;
        }
    }
    return out[3] == 77;
}
