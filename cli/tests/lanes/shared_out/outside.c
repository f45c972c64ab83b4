// Each of the 4,096 iterations finds that it lies outside of the image, and reads no memory. Right: 4,096 lanes that
// compare, 100%.
#include <stdio.h>

enum { N = 64 };
static float image[N * N];

static void fill(int width, int height, int left, int top, float with) {
#pragma omp parallel for collapse(2)
    for (int v = 0; v < N; v++)
        for (int u = 0; u < N; u++) {
            int x = u + left, y = v + top;
            if (x < width && y < height) image[y * width + x] = with * image[y * width + x] + 1;
        }
}

int main(int argc, char **argv) {
    fill(4 * argc, 4 * argc, 8, 8, 0.5);
    printf("%g\n", image[7]);
}
