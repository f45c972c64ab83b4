/* The runtime is a part of the program, where its functions have further names. */
// only gcc
// flags -static
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(100, mix(i));
        LAUNCH(90, mix(i * 3));
        LAUNCH(120, mix(i * 5));
        return 0;
    }
#pragma omp parallel for
    for (int i = 0; i < 100 * c; i++) {
        TURNS(mix(i));
        out[i] = i;
    }
#pragma omp parallel for schedule(runtime)
    for (int i = 0; i < 90 * c; i++) {
        TURNS(mix(i * 3));
        out[i] += i;
    }
#pragma omp parallel for schedule(static, 3) collapse(2)
    for (int y = 0; y < 12 * c; y++)
        for (int x = 0; x < 10; x++) {
            TURNS(mix((y * 10 + x) * 5));
            out[y * 10 + x] += x;
        }
    return out[3] == 77;
}
