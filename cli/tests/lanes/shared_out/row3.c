#include <stdio.h>
#include <stdlib.h>
static int work(int h, int w, int *in, int *out) {
#pragma omp parallel for collapse(2)
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            int s = in[y * w + x] % 5;
            for (int i = -s; i <= s; i++)
                for (int j = -s; j <= s; j++)
                    if (y - s >= 0 && y + s < h && x - s >= 0 && x + s < w) {
#pragma omp atomic
                        out[(y + i) * w + x + j] += s;
                    }
        }
    return out[99];
}
int main(void) {
    int h = 64, w = 64;
    int *in = malloc(h * w * sizeof(int)), *out = calloc(h * w, sizeof(int));
    for (int i = 0; i < h * w; i++) in[i] = rand();
    printf("%d\n", work(h, w, in, out));
}
