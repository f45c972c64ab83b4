// physics: direct simulation Monte Carlo: pairs in a cell of a thin gas collide with a chance that grows with their speed
#include "../twins/twin.h"
struct Data { const int *start; float *vx, *vy, *vz; float most; int *collisions; float *heat; };
HD void dsmc_body(int c, const Data &d) {
    int first = d.start[c], count = d.start[c + 1] - first, hits = 0;
    float heat = 0;
    u32 seed = mix2(c, 99) | 1;
    if (count > 1) {
        int candidates = count * (count - 1) / 8 + 1;
        for (int k = 0; k < candidates; k++) {
            int a = first + next(seed) % count, b = first + next(seed) % count;
            if (a == b) continue;
            float x = d.vx[a] - d.vx[b], y = d.vy[a] - d.vy[b], z = d.vz[a] - d.vz[b];
            float speed = sqrtf(x * x + y * y + z * z);
            if (nextf(seed) * d.most > speed) continue;
            // Scattered evenly over the sphere, in the frame of the pair.
            float cosine = 2 * nextf(seed) - 1, sine = sqrtf(1 - cosine * cosine), angle = 6.2831853f * nextf(seed);
            float mx = 0.5f * (d.vx[a] + d.vx[b]), my = 0.5f * (d.vy[a] + d.vy[b]), mz = 0.5f * (d.vz[a] + d.vz[b]);
            float hx = 0.5f * speed * sine * cosf(angle), hy = 0.5f * speed * sine * sinf(angle), hz = 0.5f * speed * cosine;
            d.vx[a] = mx + hx; d.vy[a] = my + hy; d.vz[a] = mz + hz;
            d.vx[b] = mx - hx; d.vy[b] = my - hy; d.vz[b] = mz - hz;
            hits++;
        }
        for (int k = first; k < first + count; k++) heat += d.vx[k] * d.vx[k] + d.vy[k] * d.vy[k] + d.vz[k] * d.vz[k];
        heat /= count;
    }
    d.collisions[c] = hits; d.heat[c] = heat;
}
TWIN_KERNEL(dsmc, "omp parallel for")
int main() {
    const int n = 4096;
    Buf<int> start(n + 1), hits(n);
    int all = 0;
    for (int c = 0; c < n; c++) { start[c] = all; all += mix2(c, 1) % 10 + mix2(c / 64, 2) % 12; }
    start[n] = all;
    Buf<float> x(all), y(all), z(all), heat(n);
    for (int k = 0; k < all; k++) { x[k] = 2 * unit(mix2(k, 3)) - 1; y[k] = 2 * unit(mix2(k, 4)) - 1; z[k] = 4 * unit(mix2(k, 5)) - 2; }
    Data d = {start.up(), x.up(), y.up(), z.up(), 4, hits.up(), heat.up()};
    RUN(dsmc, n, d);
    hits.down(); heat.down();
    printf("dsmc %.0f %.2e\n", total(hits) / 100, total(heat));
}
