#include <stdio.h>
enum { H = 64, W = 64 };
static float in[H * W], out[H * W];
int main(void) {
#pragma omp parallel for collapse(2)
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            out[y * W + x] = in[y * W + x] * 2 + 1;
    printf("%f\n", out[9]);
}
