// finance: yield curves from deposits and swaps, a scenario of quotes a thread; each swap's rate by the secant method
#include "../twins/twin.h"
struct Data { const float *quotes; const int *kinds; const float *maturity; int instruments; float *last; int *rounds; };
HD float discount(const float *at, const float *rate, int known, float t) { // rates are linear between the knots
    if (known == 0) return 1;
    if (t <= at[0]) return expf(-rate[0] * t);
    int k = 1;
    while (k < known && at[k] < t) k++;
    if (k == known) return expf(-rate[known - 1] * t);
    float part = (t - at[k - 1]) / (at[k] - at[k - 1]);
    return expf(-(rate[k - 1] + part * (rate[k] - rate[k - 1])) * t);
}
HD float swap_off(const float *at, const float *rate, int known, float end, float fixed) {
    float legs = 0;
    for (float t = end; t > 1e-3f; t -= 0.5f) legs += 0.5f * discount(at, rate, known, t);
    return 1 - discount(at, rate, known, end) - fixed * legs;
}
HD void curve_body(int i, const Data &d) {
    float at[12], rate[12];
    int known = 0, rounds = 0;
    for (int k = 0; k < d.instruments; k++) {
        float quote = d.quotes[i * d.instruments + k], end = d.maturity[k];
        if (quote <= 0) continue; // nobody quotes it
        at[known] = end;
        if (d.kinds[k] == 0) {
            rate[known] = logf(1 + quote * end) / end;
            known++;
            continue;
        }
        float a = quote, b = quote * 1.1f + 0.001f;
        rate[known] = a;
        float fa = swap_off(at, rate, known + 1, end, quote);
        for (int round = 0; round < 12; round++) {
            rate[known] = b;
            float fb = swap_off(at, rate, known + 1, end, quote);
            rounds++;
            if (fabsf(fb) < 2e-5f || fabsf(fb - fa) < 1e-9f) break;
            float to = b - fb * (b - a) / (fb - fa);
            a = b; fa = fb; b = to;
        }
        rate[known] = b;
        known++;
    }
    d.last[i] = known ? rate[known - 1] : 0; d.rounds[i] = rounds;
}
TWIN_KERNEL(curve, "omp parallel for")
int main() {
    const int n = 2048, m = 9;
    const float years[m] = {0.25f, 0.5f, 1, 1.5f, 2, 3, 4, 5, 7};
    Buf<float> q(n * m), t(m), last(n);
    Buf<int> kinds(m), rounds(n);
    for (int k = 0; k < m; k++) { t[k] = years[k]; kinds[k] = k >= 3; }
    for (int i = 0; i < n; i++) {
        float level = 0.01f + 0.04f * unit(mix2(i, 1)), slope = 0.004f * unit(mix2(i, 2));
        for (int k = 0; k < m; k++) q[i * m + k] = mix2(i / 128 * m + k, 3) % 9 == 0 ? 0 : level + slope * years[k] + 0.002f * unit(mix2(i * m + k, 4));
    }
    Data d = {q.up(), kinds.up(), t.up(), m, last.up(), rounds.up()};
    RUN(curve, n, d);
    last.down(); rounds.down();
    printf("curve %.1e %.1e\n", total(last), total(rounds));
}
