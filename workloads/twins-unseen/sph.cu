// physics: a fluid of particles in cells: densities, then pressure and viscosity from the neighbours within reach
#include "../twins/twin.h"
struct Data { const float *x, *y, *u, *v; const int *cell_at; int cells; float h; float *density, *fx, *fy; };
HD int cell_of(float x, float h, int cells) {
    int c = (int)(x / h);
    return c < 0 ? 0 : c >= cells ? cells - 1 : c;
}
HD void density_body(int i, const Data &d) {
    float x = d.x[i], y = d.y[i], hh = d.h * d.h, sum = 0;
    int cx = cell_of(x, d.h, d.cells), cy = cell_of(y, d.h, d.cells);
    for (int b = cy - 1; b <= cy + 1; b++) {
        if (b < 0 || b >= d.cells) continue;
        for (int a = cx - 1; a <= cx + 1; a++) {
            if (a < 0 || a >= d.cells) continue;
            int cell = b * d.cells + a;
            for (int j = d.cell_at[cell]; j < d.cell_at[cell + 1]; j++) {
                float dx = d.x[j] - x, dy = d.y[j] - y, rr = dx * dx + dy * dy;
                if (rr < hh) { float q = hh - rr; sum += q * q * q; }
            }
        }
    }
    d.density[i] = 4 / (3.1415927f * hh * hh * hh * hh) * sum;
}
HD void force_body(int i, const Data &d) {
    float x = d.x[i], y = d.y[i], h = d.h, own = d.density[i], fx = 0, fy = 0;
    int cx = cell_of(x, h, d.cells), cy = cell_of(y, h, d.cells);
    int x0 = cx > 0 ? cx - 1 : 0, x1 = cx + 1 < d.cells ? cx + 1 : cx, y0 = cy > 0 ? cy - 1 : 0, y1 = cy + 1 < d.cells ? cy + 1 : cy;
    for (int b = y0; b <= y1; b++) // the cells of a row are one range of particles
        for (int j = d.cell_at[b * d.cells + x0]; j < d.cell_at[b * d.cells + x1 + 1]; j++) {
            if (j == i) continue;
            float dx = x - d.x[j], dy = y - d.y[j], rr = dx * dx + dy * dy;
            if (rr >= h * h || rr < 1e-10f) continue;
            float r = sqrtf(rr), q = 1 - r / h, other = d.density[j];
            float push = 0.5f * (own + other - 2 * 6000.0f) * q * q / (r * other);
            float drag = 20 * q / other;
            fx += push * dx + drag * (d.u[j] - d.u[i]);
            fy += push * dy + drag * (d.v[j] - d.v[i]);
        }
    if (y < h) fy += 50 * (h - y);
    d.fx[i] = fx; d.fy[i] = fy - 9.8f;
}
TWIN_KERNEL(density, "omp parallel for")
TWIN_KERNEL(force, "omp parallel for")
int main() {
    const int n = 4096, cells = 20;
    const float h = 0.05f;
    std::vector<std::vector<int>> in(cells * cells);
    std::vector<float> px(n), py(n);
    for (int i = 0; i < n; i++) {
        px[i] = unit(mix2(i, 1)); py[i] = unit(mix2(i, 2)) * (0.25f + 0.6f * px[i]);
        in[cell_of(py[i], h, cells) * cells + cell_of(px[i], h, cells)].push_back(i);
    }
    Buf<float> x(n), y(n), u(n), v(n), rho(n), fx(n), fy(n);
    Buf<int> at(cells * cells + 1);
    int k = 0;
    for (int c = 0; c < cells * cells; c++) {
        at[c] = k;
        for (int i : in[c]) { x[k] = px[i]; y[k] = py[i]; u[k] = unit(mix2(i, 3)) - 0.5f; v[k++] = unit(mix2(i, 4)) - 0.5f; }
    }
    at[cells * cells] = k;
    Data d = {x.up(), y.up(), u.up(), v.up(), at.up(), cells, h, rho.up(), fx.up(), fy.up()};
    RUN(density, n, d);
    RUN(force, n, d);
    rho.down(); fy.down();
    double size = 0;
    for (int i = 0; i < n; i++) size += fabs(fy[i]);
    printf("sph %.3e %.2e\n", total(rho), size);
}
