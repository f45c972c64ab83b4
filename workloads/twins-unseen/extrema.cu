// vision: key points: extrema among 26 neighbours in a stack of blurred differences, not on edges, refined to sub-pixels
#include "../twins/twin.h"
struct Data { const float *stack; int w, h, levels; float contrast, edge; int *count; float *where; };
HD void extrema_body(int z, int y, int x, const Data &d) {
    if (z == 0 || z == d.levels - 1 || y == 0 || y == d.h - 1 || x == 0 || x == d.w - 1) return;
    int plane = d.w * d.h;
    const float *p = d.stack + z * plane + y * d.w + x;
    float v = *p;
    if (fabsf(v) < d.contrast) return;
    for (int c = -1; c <= 1; c++)
        for (int b = -1; b <= 1; b++)
            for (int a = -1; a <= 1; a++) {
                float q = p[c * plane + b * d.w + a];
                if ((a || b || c) && (v > 0 ? q >= v : q <= v)) return;
            }
    float xx = p[1] + p[-1] - 2 * v, yy = p[d.w] + p[-d.w] - 2 * v;
    float xy = 0.25f * (p[d.w + 1] + p[-d.w - 1] - p[d.w - 1] - p[-d.w + 1]);
    float trace = xx + yy, det = xx * yy - xy * xy;
    if (det <= 0 || trace * trace * d.edge >= (d.edge + 1) * (d.edge + 1) * det) return;
    float gx = 0.5f * (p[1] - p[-1]), gy = 0.5f * (p[d.w] - p[-d.w]);
    float ox = (xy * gy - yy * gx) / det, oy = (xy * gx - xx * gy) / det;
    if (fabsf(ox) > 1 || fabsf(oy) > 1) return;
    atomic_add(d.count, 1);
    d.where[z * plane + y * d.w + x] = x + ox + 0.5f * (y + oy);
}
TWIN_KERNEL3(extrema, "omp parallel for collapse(3)")
int main() {
    const int w = 96, h = 64, levels = 5;
    Buf<float> s(w * h * levels), where(w * h * levels);
    Buf<int> count(1);
    for (int z = 0; z < levels; z++) for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) {
        float v = 0;
        for (int k = 0; k < 60; k++) { // blobs of several sizes and signs
            float dx = x - w * unit(mix2(k, 1)), dy = y - h * unit(mix2(k, 2)), r = 1.5f + 3 * unit(mix2(k, 3)), fit = z - 1 - 2 * unit(mix2(k, 4));
            float q = (dx * dx + dy * dy) / (2 * r * r);
            if (q < 8) v += (k & 1 ? 1 : -1) * expf(-q - fit * fit);
        }
        s[(z * h + y) * w + x] = v + 0.02f * unit(mix2((z * h + y) * w + x, 5));
    }
    Data d = {s.up(), w, h, levels, 0.05f, 10, count.up(), where.up()};
    RUN3(extrema, levels, h, w, d);
    count.down(); where.down();
    printf("extrema %d %.2e\n", count[0], total(where));
}
