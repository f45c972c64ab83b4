// vision: a median filter of 5 x 5 by quickselect, only where a pixel differs much from its neighbours' mean
#include "../twins/twin.h"
struct Data { const u8 *in; u8 *out; int w, h, noise; };
HD int select(u8 *v, int n, int k) {
    int lo = 0, hi = n - 1;
    while (lo < hi) {
        int pivot = v[(lo + hi) / 2], i = lo, j = hi;
        while (i <= j) {
            while (v[i] < pivot) i++;
            while (v[j] > pivot) j--;
            if (i <= j) {
                u8 t = v[i];
                v[i++] = v[j];
                v[j--] = t;
            }
        }
        if (k <= j) hi = j;
        else if (k >= i) lo = i;
        else break;
    }
    return v[k];
}
HD void median_body(int y, int x, const Data &d) {
    u8 window[25];
    int n = 0, sum = 0, own = d.in[y * d.w + x];
    for (int b = y - 2; b <= y + 2; b++) {
        if (b < 0 || b >= d.h) continue;
        for (int a = x - 2; a <= x + 2; a++)
            if (a >= 0 && a < d.w) { window[n] = d.in[b * d.w + a]; sum += window[n++]; }
    }
    int off = own * n - sum;
    if (off < 0) off = -off;
    d.out[y * d.w + x] = off < d.noise * n ? own : select(window, n, n / 2);
}
TWIN_KERNEL2(median, "omp parallel for collapse(2) schedule(static)")
int main() {
    const int w = 160, h = 120;
    Buf<u8> in(w * h), out(w * h);
    for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) {
        u32 r = mix2(x, y);
        int v = (int)(128 + 60 * sinf(x * 0.05f) * cosf(y * 0.08f)) + r % 12 + (x / 40 + y / 30) % 2 * 30;
        if (r / 16 % 12 == 0) v = r & 1 ? 255 : 0;
        in[y * w + x] = v;
    }
    Data d = {in.up(), out.up(), w, h, 9};
    RUN2(median, h, w, d);
    out.down();
    printf("median %.0f\n", total(out) / 100);
}
