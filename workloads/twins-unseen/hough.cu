// vision: lines by Hough: each pixel on an edge votes for the lines through it near its gradient, then peaks are found
#include "../twins/twin.h"
struct Data { const u8 *img; int w, h, angles, radii; const float *cosine, *sine; int *votes; int *peaks; };
HD void vote_body(int y, int x, const Data &d) {
    if (x == 0 || y == 0 || x == d.w - 1 || y == d.h - 1) return;
    const u8 *p = d.img + y * d.w + x;
    int gx = p[1 - d.w] + 2 * p[1] + p[1 + d.w] - p[-1 - d.w] - 2 * p[-1] - p[-1 + d.w];
    int gy = p[d.w - 1] + 2 * p[d.w] + p[d.w + 1] - p[-d.w - 1] - 2 * p[-d.w] - p[-d.w + 1];
    int size = gx * gx + gy * gy;
    if (size < 90 * 90) return;
    int middle = (int)(atan2f((float)gy, (float)gx) * d.angles / 3.1415927f + 2 * d.angles + 0.37f) % d.angles;
    int spread = size > 300 * 300 ? 2 : 5;
    for (int k = -spread; k <= spread; k++) {
        int a = (middle + k + d.angles) % d.angles;
        int r = (int)(x * d.cosine[a] + y * d.sine[a]) + d.radii / 2;
        if (r >= 0 && r < d.radii) atomic_add(&d.votes[a * d.radii + r], 1);
    }
}
HD void peak_body(int a, int r, const Data &d) {
    int v = d.votes[a * d.radii + r];
    if (v < 12 || r == 0 || r == d.radii - 1) return;
    for (int k = -2; k <= 2; k++) {
        int row = (a + k + d.angles) % d.angles * d.radii;
        for (int q = r - 1; q <= r + 1; q++)
            if (d.votes[row + q] > v) return;
    }
    atomic_add(d.peaks, 1);
}
TWIN_KERNEL2(vote, "omp parallel for collapse(2)")
TWIN_KERNEL2(peak, "omp parallel for collapse(2)")
int main() {
    const int w = 192, h = 128, angles = 64, radii = 512;
    Buf<u8> img(w * h);
    Buf<float> c(angles), s(angles);
    Buf<int> votes(angles * radii), peaks(1);
    for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) {
        int v = 40 + mix2(x, y) % 24;
        for (int k = 0; k < 7; k++) {
            float a = 3.14f * unit(mix2(k, 1)), off = (x - w / 2) * cosf(a) + (y - h / 2) * sinf(a) - 90 * unit(mix2(k, 2)) + 45;
            if (off > 0 && off < 14) v += 35 + 15 * k;
        }
        img[y * w + x] = v > 255 ? 255 : v;
    }
    for (int k = 0; k < angles; k++) { c[k] = cosf(3.1415927f * k / angles); s[k] = sinf(3.1415927f * k / angles); }
    Data d = {img.up(), w, h, angles, radii, c.up(), s.up(), votes.up(), peaks.up()};
    RUN2(vote, h, w, d);
    RUN2(peak, angles, radii, d);
    votes.down(); peaks.down();
    printf("hough %.2e %d\n", total(votes), peaks[0] / 10);
}
