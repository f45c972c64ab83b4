/* Loops stand in functions that the threads of a team call, again and again. */
#include "marks.h"

struct grid {
    int width, height;
    int *cells;
};

__attribute__((noinline)) static void relax(struct grid *grid, int phase) {
#pragma omp for schedule(static)
    for (int y = 0; y < grid->height; y++)
        for (int x = 0; x < (int)mix(y + phase); x++) {
            MARK;
            grid->cells[y * grid->width + x] += phase;
        }
}

__attribute__((noinline)) static void colour(struct grid *grid) {
#pragma omp for schedule(static, 2) nowait
    for (int y = 1; y < grid->height; y += 2) {
        TURNS(mix(y * 3));
        grid->cells[y * grid->width] ^= 1;
    }
}

int main(int c, char **v) {
    if (c > 1) {
        for (int phase = 0; phase < 4; phase++) {
            LAUNCH(40, mix(i + phase));
            LAUNCH(20, mix((2 * i + 1) * 3));
        }
        return 0;
    }
    struct grid grid = {32, 40 * c, out};
#pragma omp parallel
    for (int phase = 0; phase < 4; phase++) {
        relax(&grid, phase);
        colour(&grid);
    }
    return out[3] == 77;
}
