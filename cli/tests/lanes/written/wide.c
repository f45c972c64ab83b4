/* Numbers of iterations near the ends of their types, and such that fall. */
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(70, mix(i));
        LAUNCH(70, mix(i * 3));
        LAUNCH(34, mix(100 - 3 * i));
        LAUNCH(51, mix(i + 2));
        LAUNCH(40, mix(i + 4));
        return 0;
    }
    unsigned long long big = 0xfffffffffffff000ull * c;
#pragma omp parallel for
    for (unsigned long long i = big; i < big + 70; i++) {
        TURNS(mix((u)(i - big)));
        out[i - big] = 1;
    }
#pragma omp parallel for schedule(dynamic, 3)
    for (unsigned long long i = big + 69; i >= big; i--) {
        TURNS(mix((u)(big + 69 - i) * 3));
        out[i - big] += 1;
    }
#pragma omp parallel for schedule(static, 5)
    for (int i = 100 * c; i > 0; i -= 3) {
        TURNS(mix(i));
        out[i] += 1;
    }
#pragma omp parallel for schedule(guided)
    for (long i = -25 * c; i <= 25; i++) {
        TURNS(mix((u)(i + 27)));
        out[i + 30] += 1;
    }
#pragma omp parallel for
    for (short i = 0; i < (short)(40 * c); i++) {
        TURNS(mix(i + 4));
        out[i] += 1;
    }
    return out[3] == 77;
}
