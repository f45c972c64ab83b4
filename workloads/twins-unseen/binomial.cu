// finance: American puts by a binomial tree, one option a thread, the level of the tree in an array of its own
#include "../twins/twin.h"
struct Data { const double *spot, *strike, *years, *vol; double rate; double *price; int *early; };
HD void binomial_body(int i, const Data &d) {
    const int STEPS = 48;
    double s = d.spot[i], k = d.strike[i], dt = d.years[i] / STEPS, v[STEPS + 1];
    double up = exp(d.vol[i] * sqrt(dt)), down = 1 / up, grow = exp(d.rate * dt);
    double p = (grow - down) / (up - down), with = p / grow, without = (1 - p) / grow;
    int early = 0;
    double at = s * pow(down, STEPS);
    for (int j = 0; j <= STEPS; j++) {
        v[j] = fmax(0.0, k - at);
        at *= up * up;
    }
    for (int step = STEPS - 1; step >= 0; step--) {
        at = s * pow(down, step);
        for (int j = 0; j <= step; j++) {
            double held = without * v[j] + with * v[j + 1], now = k - at;
            if (now > held) { v[j] = now; early++; }
            else v[j] = held;
            at *= up * up;
        }
    }
    d.price[i] = v[0]; d.early[i] = early;
}
TWIN_KERNEL(binomial, "omp parallel for")
int main() {
    const int n = 2048;
    Buf<double> s(n), k(n), t(n), v(n), o(n);
    Buf<int> e(n);
    for (int i = 0; i < n; i++) {
        s[i] = 60 + 80 * unit(mix2(i, 1)); k[i] = 60 + 80 * unit(mix2(i, 2)); t[i] = 0.1 + 2 * unit(mix2(i, 3)); v[i] = 0.15 + 0.4 * unit(mix2(i, 4));
    }
    Data d = {s.up(), k.up(), t.up(), v.up(), 0.04, o.up(), e.up()};
    RUN(binomial, n, d);
    o.down(); e.down();
    printf("binomial %.2f %.3e\n", total(o), total(e));
}
