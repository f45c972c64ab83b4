/* A collapsed loop that is no rectangle. clang makes a rectangle of it. */
// only gcc
#include "marks.h"

int main(int c, char **v) {
    if (c > 1) {
        printf("launch");
        for (int y = 0; y < 23; y++)
            for (int x = 0; x < y; x++) printf(" %u", mix(y * 23 + x));
        printf("\n");
        return 0;
    }
#pragma omp parallel for collapse(2)
    for (int y = 0; y < 23 * c; y++)
        for (int x = 0; x < y; x++) {
            TURNS(mix(y * 23 + x));
            out[y * 23 + x] = y;
        }
    return out[3] == 77;
}
