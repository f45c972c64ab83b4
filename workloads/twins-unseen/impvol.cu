// finance: implied volatility: Newton from a guess, bisection where its steps leave the bracket or the slope is flat
#include "../twins/twin.h"
struct Quote { double spot, strike, years, price; int call; };
struct Data { const Quote *quotes; double rate; double *vol; int *rounds; };
HD double below(double x) { return 0.5 * erfc(-x * 0.7071067811865476); } // normal distribution
DEVCALL double worth(const Quote &q, double rate, double vol, double &slope) {
    double root = sqrt(q.years), deep = q.strike * exp(-rate * q.years);
    double a = (log(q.spot / deep) + 0.5 * vol * vol * q.years) / (vol * root), b = a - vol * root;
    slope = q.spot * root * 0.3989422804014327 * exp(-0.5 * a * a);
    return q.call ? q.spot * below(a) - deep * below(b) : deep * below(-b) - q.spot * below(-a);
}
HD void impvol_body(int i, const Data &d) {
    Quote q = d.quotes[i];
    double deep = q.strike * exp(-d.rate * q.years), least = q.call ? q.spot - deep : deep - q.spot;
    if (q.price <= (least > 0 ? least : 0) + 1e-9 || q.price >= (q.call ? q.spot : deep)) {
        d.vol[i] = 0; d.rounds[i] = -1; // no volatility makes that price
        return;
    }
    double lo = 1e-3, hi = 4, vol = sqrt(6.283 / q.years) * q.price / q.spot, slope;
    if (vol < lo || vol > hi) vol = 0.3;
    int rounds = 0;
    for (; rounds < 60; rounds++) {
        double off = worth(q, d.rate, vol, slope) - q.price;
        if (fabs(off) < 1e-7 * q.spot) break;
        if (off > 0) hi = vol;
        else lo = vol;
        double step = slope > 1e-6 ? off / slope : 1e9, to = vol - step;
        if (to <= lo || to >= hi) to = 0.5 * (lo + hi);
        if (hi - lo < 1e-8) break;
        vol = to;
    }
    d.vol[i] = vol; d.rounds[i] = rounds;
}
TWIN_KERNEL(impvol, "omp parallel for")
int main() {
    const int n = 8192;
    Buf<Quote> quotes(n);
    Buf<double> vol(n);
    Buf<int> rounds(n);
    for (int i = 0; i < n; i++) {
        int expiry = i / 512, place = i % 512; // chains of strikes, calls, then puts
        Quote q = {100, 70 + 0.25 * (place % 256), 0.1 + 0.1 * expiry, 0, place < 256};
        double slope, v = 0.15 + 0.1 * fabs(log(q.strike / 100)) + 0.3 * unit(mix2(expiry, 4));
        q.price = worth(q, 0.03, v, slope) * (mix2(i, 5) % 64 ? 1 : 0.9);
        quotes[i] = q;
    }
    Data d = {quotes.up(), 0.03, vol.up(), rounds.up()};
    RUN(impvol, n, d);
    vol.down(); rounds.down();
    printf("impvol %.0f %.2e\n", total(vol), total(rounds));
}
