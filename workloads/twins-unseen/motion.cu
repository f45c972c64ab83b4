// vision: motion of blocks of 8 x 8 between two frames: a diamond walk, sums of differences given up once too large
#include "../twins/twin.h"
struct Data { const u8 *was, *is; int w, h; int *vector; int *cost; };
HD int differences(const Data &d, int bx, int by, int dx, int dy, int most) {
    int x = bx + dx, y = by + dy, sum = 0;
    if (x < 0 || y < 0 || x + 8 > d.w || y + 8 > d.h) return most;
    for (int r = 0; r < 8; r++) {
        const u8 *a = d.is + (by + r) * d.w + bx, *b = d.was + (y + r) * d.w + x;
        for (int c = 0; c < 8; c++) sum += a[c] > b[c] ? a[c] - b[c] : b[c] - a[c];
        if (sum >= most) return most;
    }
    return sum;
}
HD void motion_body(int by, int bx, const Data &d) {
    const signed char LARGE[8][2] = {{0, -2}, {1, -1}, {2, 0}, {1, 1}, {0, 2}, {-1, 1}, {-2, 0}, {-1, -1}};
    const signed char SMALL[4][2] = {{0, -1}, {1, 0}, {0, 1}, {-1, 0}};
    int x = bx * 4, y = by * 4, dx = 0, dy = 0;
    int best = differences(d, x, y, 0, 0, 1 << 20);
    if (best > 100)
        for (int step = 0; step < 8; step++) {
            int to = -1;
            for (int k = 0; k < 8; k++) {
                int c = differences(d, x, y, dx + LARGE[k][0], dy + LARGE[k][1], best);
                if (c < best) { best = c; to = k; }
            }
            if (to < 0) break;
            dx += LARGE[to][0]; dy += LARGE[to][1];
        }
    for (int k = 0, ox = dx, oy = dy; k < 4 && best > 0; k++) {
        int c = differences(d, x, y, ox + SMALL[k][0], oy + SMALL[k][1], best);
        if (c < best) { best = c; dx = ox + SMALL[k][0]; dy = oy + SMALL[k][1]; }
    }
    int at = by * ((d.w - 8) / 4 + 1) + bx;
    d.vector[at] = dx * 64 + dy; d.cost[at] = best;
}
TWIN_KERNEL2(motion, "omp parallel for collapse(2)")
HD int scene(float x, float y) { return (int)(120 + 50 * sinf(x * 0.31f) + 40 * cosf(y * 0.23f + x * 0.11f) + 20 * sinf(x * y * 0.01f)); }
int main() {
    const int w = 260, h = 132, nx = (w - 8) / 4 + 1, ny = (h - 8) / 4 + 1;
    Buf<u8> was(w * h), is(w * h);
    Buf<int> v(nx * ny), c(nx * ny);
    for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) {
        int part = x / 65 + 4 * (y / 44), mx = (int)(mix2(part, 1) % 9) - 4, my = (int)(mix2(part, 2) % 7) - 3;
        was[y * w + x] = scene(x, y);
        is[y * w + x] = part % 3 == 0 ? scene(x, y) : scene(x + mx, y + my) + mix2(x, y) % 4;
    }
    Data d = {was.up(), is.up(), w, h, v.up(), c.up()};
    RUN2(motion, ny, nx, d);
    v.down(); c.down();
    printf("motion %d %.0f %.0f\n", nx * ny, total(v), total(c));
}
