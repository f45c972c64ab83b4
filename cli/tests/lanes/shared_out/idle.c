// Each of the 4,096 iterations looks whether there is something to do, and there is nothing. Right: 4,096 lanes that
// read and compare, 100%.
#include <stdio.h>

enum { N = 64 };
float norm[N * N], image[N * N];

int main(int argc, char **argv) {
    norm[argc] = argc > 1;
#pragma omp parallel for collapse(2)
    for (int x = 0; x < N; x++)
        for (int y = 0; y < N; y++)
            if (norm[x * N + y] != 0) image[x * N + y] /= norm[x * N + y];
    printf("%g\n", image[7]);
}
