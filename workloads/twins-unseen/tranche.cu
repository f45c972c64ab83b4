// finance: losses of a tranche of a pool of loans, a scenario of defaults a thread; done when the tranche is used up
#include "../twins/twin.h"
struct Loan { float threshold, loading, loss; };
struct Data { const Loan *loans; int count; float attach, detach; float *loss; int *defaults; };
HD float normal(u32 &seed) { // the sum of uniform numbers is nearly normal
    float s = -6;
    for (int k = 0; k < 12; k++) s += nextf(seed);
    return s;
}
HD void tranche_body(int i, const Data &d) {
    u32 seed = mix2(i, 3) | 1;
    float market = normal(seed), lost = 0, severity = market < -1 ? 0.75f : 0.55f;
    int defaults = 0;
    for (int k = 0; k < d.count; k++) {
        const Loan &l = d.loans[k];
        float rest = sqrtf(1 - l.loading * l.loading), asset = l.loading * market + rest * normal(seed);
        if (asset > l.threshold) continue;
        defaults++;
        lost += l.loss * severity;
        if (lost >= d.detach) break;
    }
    float hit = lost <= d.attach ? 0 : lost >= d.detach ? 1 : (lost - d.attach) / (d.detach - d.attach);
    d.loss[i] = hit; d.defaults[i] = defaults;
}
TWIN_KERNEL(tranche, "omp parallel for")
int main() {
    const int n = 8192, m = 60;
    Buf<Loan> l(m);
    Buf<float> loss(n);
    Buf<int> defaults(n);
    for (int k = 0; k < m; k++) l[k] = Loan{-2.7f + 1.2f * unit(mix2(k, 1)), 0.3f + 0.5f * unit(mix2(k, 2)), 0.5f / m + unit(mix2(k, 4)) / m};
    Data d = {l.up(), m, 0.03f, 0.08f, loss.up(), defaults.up()};
    RUN(tranche, n, d);
    loss.down(); defaults.down();
    printf("tranche %.1e %.2e\n", total(loss), total(defaults));
}
