// codecs: rows of strips filtered as PNG does: none, left, up, mean or Paeth, undone a strip of three rows a thread
#include "../twins/twin.h"
struct Data { const u8 *in; u8 *out; int strips, width, bpp; };
HD u8 paeth(int a, int b, int c) {
    int p = a + b - c, pa = p > a ? p - a : a - p, pb = p > b ? p - b : b - p, pc = p > c ? p - c : c - p;
    if (pa <= pb && pa <= pc) return a;
    return pb <= pc ? b : c;
}
HD void pngfilter_body(int i, const Data &d) {
    const int ROWS = 3;
    const u8 *in = d.in + i * ROWS * (d.width + 1);
    u8 *out = d.out + i * ROWS * d.width;
    for (int r = 0; r < ROWS; r++) {
        int type = *in++;
        const u8 *up = r ? out - d.width : 0;
        switch (type) {
        case 1:
            for (int x = 0; x < d.width; x++) out[x] = in[x] + (x >= d.bpp ? out[x - d.bpp] : 0);
            break;
        case 2:
            for (int x = 0; x < d.width; x++) out[x] = in[x] + (up ? up[x] : 0);
            break;
        case 3:
            for (int x = 0; x < d.width; x++) {
                int left = x >= d.bpp ? out[x - d.bpp] : 0;
                out[x] = in[x] + (left + (up ? up[x] : 0)) / 2;
            }
            break;
        case 4:
            for (int x = 0; x < d.width; x++) {
                int left = x >= d.bpp ? out[x - d.bpp] : 0, above = up ? up[x] : 0, corner = up && x >= d.bpp ? up[x - d.bpp] : 0;
                out[x] = in[x] + paeth(left, above, corner);
            }
            break;
        default:
            for (int x = 0; x < d.width; x++) out[x] = in[x];
        }
        in += d.width;
        out += d.width;
    }
}
TWIN_KERNEL(pngfilter, "omp parallel for")
int main() {
    const int n = 2048, width = 96, rows = 3 * n;
    Buf<u8> in(rows * (width + 1)), out(rows * width);
    for (int r = 0; r < rows; r++) {
        in[r * (width + 1)] = mix2(r / 192, 1) % 5; // an encoder keeps to a filter for a while
        for (int x = 0; x < width; x++) in[r * (width + 1) + x + 1] = mix2(r * 128 + x, 2) % 7;
    }
    Data d = {in.up(), out.up(), n, width, 3};
    RUN(pngfilter, n, d);
    out.down();
    u32 sum = 0;
    for (size_t k = 0; k < out.size(); k++) sum = sum * 17 + out[k];
    printf("pngfilter %u\n", sum);
}
