// Chunks of rows: gcc makes one call of memset of each chunk of the second loop. Right: 62 lanes of the first and of
// the third; the second's are left out.
#include <stdio.h>

enum { ROWS = 62 };

int main(int argc, char **argv) {
    int chunk = argc + 9;
    double in[ROWS][15], out[ROWS][7];
#pragma omp parallel
    {
#pragma omp for schedule(static, chunk)
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < 15; j++) in[i][j] = i + j;
#pragma omp for schedule(static, chunk)
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < 7; j++) out[i][j] = 0;
#pragma omp for schedule(static, chunk)
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < 7; j++)
                for (int k = 0; k < 15; k++) out[i][j] += in[i][k] * in[j][k];
    }
    printf("%g\n", out[3][3]);
}
