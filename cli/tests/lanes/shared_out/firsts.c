// Each thread's first iteration does more: gcc -O3 makes copies of it, and of the first iteration of each chunk.
#include <omp.h>
#include <stdio.h>

static float from[800], to[800];
static int last[16];

int main(int argc, char **argv) {
    int n = 50 * argc, mine = argc, own;
    char first = 'y';
    for (int i = 0; i < n; i++) {
        from[i] = i;
    }
#pragma omp parallel for schedule(static, 5) firstprivate(first) private(own)
    for (int i = 0; i < n; i++) {
        if (first == 'y') {
            own = omp_get_thread_num();
            first = 'n';
        }
        to[i] = from[i] * 2;
        printf("%d %d %g\n", own, i, to[i]);
    }
    // The flag is set in the first iteration, and tested in each.
#pragma omp parallel for collapse(2) firstprivate(mine) schedule(static, 1)
    for (int y = 0; y < 8 * argc; y++) {
        for (int x = 0; x < 10 * argc; x++) {
            if (mine == 1) {
                mine = omp_get_thread_num() + 2;
            }
            last[mine & 15] ^= x;
            for (int i = y; i < 8; i++) {
                to[y * 10 + x] += from[i];
            }
        }
    }
    printf("%g %d\n", to[n - 1], last[1]);
    return 0;
}
