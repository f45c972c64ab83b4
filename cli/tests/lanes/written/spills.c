/* Many values live over the runtime's calls, and so do the addresses of what those write. */
#include "marks.h"

static int less(const void *a, const void *b) {
    MARK;
    return *(const int *)a - *(const int *)b;
}

int main(int c, char **v) {
    if (c > 1) {
        LAUNCH(90, mix(i));
        LAUNCH(80, mix(i * 3));
        LAUNCH(70, mix(i) > 1);
        return 0;
    }
    int a = c + 1, b = c + 2, d = c + 3, e = c + 4, f = c + 5, g = c + 6, h = c + 7;
#pragma omp parallel firstprivate(a, b, d, e, f, g, h)
    {
        int t = omp_get_thread_num() * a, x = t ^ b, y = t + d, z = t * e;
#pragma omp for schedule(dynamic, 5) nowait
        for (int i = 0; i < 90 * c; i++) {
            TURNS(mix(i));
            out[i] = i * a + b * x + d * y + e * z + f + g * h;
        }
#pragma omp for schedule(guided, 3) nowait
        for (unsigned long long i = 0; i < 80 * c; i++) {
            TURNS(mix(i * 3));
            out[i] = i * a + b * x + d * y + e * z + f + g * h;
        }
#pragma omp for schedule(dynamic, 3) nowait
        for (int i = 0; i < 70 * c; i++) {
            int pair[2] = {3, 1};
            if (mix(i) > 1) qsort(pair, 2, sizeof *pair, less);
            out[i] = pair[0];
        }
        out[5000 + t % 64] = x + y + z;
    }
    return out[3] == 77;
}
