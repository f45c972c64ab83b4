// Each of four threads adds up each 17th number, 32 of them; then one of them works on a table that nobody shares.
// Right: 128 lanes, 100%.
#include <omp.h>
#include <stdio.h>

enum { STEP = 17, EACH = 32, MOST = 64 };
static double found[STEP * EACH * MOST], result[MOST];

int main(int argc, char **argv) {
    for (int i = 0; i < STEP * EACH * MOST; i++) found[i] = i % 7 * argc;
#pragma omp parallel
    {
        int id = omp_get_thread_num(), threads = omp_get_num_threads();
        double table[STEP];
        for (int i = 0; i < STEP; i++) table[i] = found[i] + id;
        double sum = 0;
        for (int i = id; i < threads * STEP * EACH / 4; i += STEP) sum += found[i];
        result[id] = sum;
#pragma omp barrier
        if (id == 0) {
            for (int column = 0; column < STEP - 1; column++)
                for (int row = STEP - 1; row > column; row--)
                    table[row] += (table[row] - table[row - 1]) / ((1 << (column + 1)) - 1);
            result[0] = table[STEP - 1];
        }
    }
    printf("%g %g\n", result[0], result[1]);
}
