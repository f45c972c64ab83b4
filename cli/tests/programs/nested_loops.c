// Loops of several kinds in a parallel one: a triangle of trips, so that the right numbers are known, two loops on one
// line, and a count per row in a static variable behind another.
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 60, COLUMNS = 10 };
static double grid[ROWS][COLUMNS], sums[ROWS];
static int counts[16];

int main(void) {
    double all = 0;
#pragma omp parallel for schedule(dynamic, 4) reduction(+ : all)
    for (int row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int column = 0; column <= row % COLUMNS; column++)
            sum += grid[row][column] * 0.5 + column;
        sums[row] = sum;
        all += sum;
    }
    for (int row = 0; row < ROWS; row++)
        counts[5 + (int)sums[row] % 8]++;
    for (int row = 0; row < ROWS; row++) for (int column = 0; column < COLUMNS; column++) grid[row][column] += counts[row % 16];
    printf("%g\n", all + grid[7][7]);
}
