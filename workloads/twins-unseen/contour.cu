// vision: marching squares: length of contour lines and area above them in each cell, for several heights
#include "../twins/twin.h"
struct Data { const float *field; int w, h; const float *heights; int levels; float *length, *area; };
HD float cut(float a, float b, float at) { return (at - a) / (b - a); }
HD float line(float x0, float y0, float x1, float y1) { return sqrtf((x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0)); }
HD void contour_body(int y, int x, const Data &d) {
    const float *p = d.field + y * d.w + x;
    float a = p[0], b = p[1], c = p[d.w + 1], e = p[d.w], length = 0, area = 0;
    for (int k = 0; k < d.levels; k++) {
        float t = d.heights[k];
        int kind = (a > t) | (b > t) << 1 | (c > t) << 2 | (e > t) << 3;
        switch (kind) {
        case 0: break;
        case 15: area += 1; break;
        case 1: case 14: {
            float u = cut(a, b, t), v = cut(a, e, t);
            length += line(u, 0, 0, v); area += kind == 1 ? u * v / 2 : 1 - u * v / 2;
            break; }
        case 2: case 13: {
            float u = cut(b, a, t), v = cut(b, c, t);
            length += line(1 - u, 0, 1, v); area += kind == 2 ? u * v / 2 : 1 - u * v / 2;
            break; }
        case 4: case 11: {
            float u = cut(c, e, t), v = cut(c, b, t);
            length += line(1 - u, 1, 1, 1 - v); area += kind == 4 ? u * v / 2 : 1 - u * v / 2;
            break; }
        case 8: case 7: {
            float u = cut(e, c, t), v = cut(e, a, t);
            length += line(u, 1, 0, 1 - v); area += kind == 8 ? u * v / 2 : 1 - u * v / 2;
            break; }
        case 3: case 12: {
            float u = cut(a, e, t), v = cut(b, c, t);
            length += line(0, u, 1, v); area += kind == 3 ? (u + v) / 2 : 1 - (u + v) / 2;
            break; }
        case 6: case 9: {
            float u = cut(a, b, t), v = cut(e, c, t);
            length += line(u, 0, v, 1); area += kind == 9 ? (u + v) / 2 : 1 - (u + v) / 2;
            break; }
        default: { // a saddle: what the middle is decides
            float u = cut(a, b, t), v = cut(b, c, t), r = cut(e, c, t), s = cut(a, e, t);
            bool high = (a + b + c + e) / 4 > t;
            if (high == (kind == 5)) length += line(u, 0, 1, v) + line(r, 1, 0, s);
            else length += line(u, 0, 0, s) + line(r, 1, 1, v);
            area += high ? 0.75f : 0.25f; }
        }
    }
    int at = y * (d.w - 1) + x;
    d.length[at] = length; d.area[at] = area;
}
TWIN_KERNEL2(contour, "omp parallel for collapse(2)")
int main() {
    const int w = 193, h = 129, m = 8, n = (w - 1) * (h - 1);
    Buf<float> f(w * h), heights(m), length(n), area(n);
    for (int y = 0; y < h; y++) for (int x = 0; x < w; x++)
        f[y * w + x] = sinf(x * 0.06f) * cosf(y * 0.07f) + 0.5f * sinf(0.02f * (x + 2 * y)) + 0.02f * unit(mix2(x / 2, y / 2));
    for (int k = 0; k < m; k++) heights[k] = -1 + 0.27f * k;
    Data d = {f.up(), w, h, heights.up(), m, length.up(), area.up()};
    RUN2(contour, h - 1, w - 1, d);
    length.down(); area.down();
    printf("contour %.3e %.3e\n", total(length), total(area));
}
