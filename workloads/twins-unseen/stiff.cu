// physics: a stiff reaction of three substances by backward Euler: Newton with pivoted elimination, step doubled or halved
#include "../twins/twin.h"
struct Data { const double *k1, *k2, *k3; double until; double *out; int *work; };
HD bool solve3(double a[3][4]) {
    for (int c = 0; c < 3; c++) {
        int p = c;
        for (int r = c + 1; r < 3; r++)
            if (fabs(a[r][c]) > fabs(a[p][c])) p = r;
        if (fabs(a[p][c]) < 1e-14) return false;
        if (p != c)
            for (int k = c; k < 4; k++) { double t = a[p][k]; a[p][k] = a[c][k]; a[c][k] = t; }
        for (int r = 0; r < 3; r++) {
            if (r == c) continue;
            double f = a[r][c] / a[c][c];
            for (int k = c; k < 4; k++) a[r][k] -= f * a[c][k];
        }
    }
    return true;
}
HD void stiff_body(int i, const Data &d) {
    double k1 = d.k1[i], k2 = d.k2[i], k3 = d.k3[i], y[3] = {1, 0, 0}, t = 0, h = 1e-4;
    int work = 0;
    while (t < d.until && work < 2000) {
        if (t + h > d.until) h = d.until - t;
        double z[3] = {y[0], y[1], y[2]};
        bool settled = false;
        int rounds = 0;
        while (rounds < 6 && !settled) {
            rounds++;
            double slow = k1 * z[0], fast = k2 * z[1] * z[1], back = k3 * z[1] * z[2];
            double a[3][4] = {{1 + h * k1, -h * k3 * z[2], -h * k3 * z[1], y[0] - z[0] + h * (back - slow)},
                              {-h * k1, 1 + h * (k3 * z[2] + 2 * k2 * z[1]), h * k3 * z[1], y[1] - z[1] + h * (slow - back - fast)},
                              {0, -2 * h * k2 * z[1], 1, y[2] - z[2] + h * fast}};
            if (!solve3(a)) break;
            double move = 0;
            for (int c = 0; c < 3; c++) { double by = a[c][3] / a[c][c]; z[c] += by; move += fabs(by); }
            settled = move < 1e-8;
        }
        work += rounds;
        double change = fabs(z[0] - y[0]) + fabs(z[2] - y[2]);
        if ((!settled || change > 0.08) && h > 1e-7) { h *= 0.5; continue; }
        t += h;
        for (int c = 0; c < 3; c++) y[c] = z[c];
        if (rounds <= 3 && change < 0.03) h *= 2;
    }
    d.out[i] = y[0] + 1000 * y[1]; d.work[i] = work;
}
TWIN_KERNEL(stiff, "omp parallel for schedule(guided)")
int main() {
    const int n = 2048;
    Buf<double> a(n), b(n), c(n), o(n);
    Buf<int> w(n);
    for (int i = 0; i < n; i++) { a[i] = 0.04 * (1 + unit(mix2(i, 1))); b[i] = 3e7 * (1 + unit(mix2(i, 2))); c[i] = pow(10.0, 5.0 * i / n); }
    Data d = {a.up(), b.up(), c.up(), 20, o.up(), w.up()};
    RUN(stiff, n, d);
    o.down(); w.down();
    printf("stiff %.3e %.2e\n", total(o), total(w));
}
