// text: rows of CSV: numbers with sign, fraction and exponent, quoted fields, empty and bad ones; sum and mean of a row
#include "../twins/twin.h"
struct Data { const char *text; const int *start; double *sum; int *good, *bad; };
HD bool digit(char c) { return c >= '0' && c <= '9'; }
// A number at p, which moves behind it; false where there is none.
HD bool number(const char *&p, const char *end, double &value) {
    bool minus = false;
    if (p < end && (*p == '-' || *p == '+')) minus = *p++ == '-';
    u64 mantissa = 0;
    int digits = 0, exponent = 0;
    while (p < end && digit(*p)) { mantissa = mantissa * 10 + (*p++ - '0'); digits++; }
    if (p < end && *p == '.') {
        p++;
        while (p < end && digit(*p)) { mantissa = mantissa * 10 + (*p++ - '0'); digits++; exponent--; }
    }
    if (digits == 0 || digits > 18) return false;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        bool negative = p < end && *p == '-';
        if (negative || (p < end && *p == '+')) p++;
        if (p == end || !digit(*p)) return false;
        int e = 0;
        while (p < end && digit(*p)) e = e * 10 + (*p++ - '0');
        exponent += negative ? -e : e;
    }
    double v = (double)mantissa, ten = 10;
    for (int e = exponent < 0 ? -exponent : exponent; e; e >>= 1, ten *= ten)
        if (e & 1) v = exponent < 0 ? v / ten : v * ten;
    value = minus ? -v : v;
    return true;
}
HD void csvnum_body(int i, const Data &d) {
    const char *p = d.text + d.start[i], *end = d.text + d.start[i + 1];
    double sum = 0;
    int good = 0, bad = 0;
    while (p < end) {
        bool quoted = *p == '"';
        if (quoted) p++;
        double v;
        if (p < end && *p == ',') { p++; continue; } // empty
        bool ok = number(p, end, v) && (p == end || *p == (quoted ? '"' : ','));
        if (ok) { sum += v; good++; } else bad++;
        while (p < end && *p != ',') p++;
        if (p < end) p++;
    }
    d.sum[i] = sum; d.good[i] = good; d.bad[i] = bad;
}
TWIN_KERNEL(csvnum, "omp parallel for")
int main() {
    const int n = 8192;
    std::vector<char> text;
    Buf<int> start(n + 1), good(n), bad(n);
    Buf<double> sum(n);
    for (int i = 0; i < n; i++) {
        start[i] = text.size();
        int fields = 7 + (mix2(i, 1) % 64 == 0); // a measurement a row, its columns have widths
        for (int k = 0; k < fields; k++) {
            u32 r = mix2(i * 16 + k, 2);
            char s[48];
            double v = unit(r) * 900;
            switch (r % 60 == 0 ? 4 : k) {
            case 0: snprintf(s, sizeof s, "%04d", (int)v); break;
            case 1: snprintf(s, sizeof s, "\"%06.2f\"", v); break;
            case 2: snprintf(s, sizeof s, "%.4e", v); break;
            case 3: snprintf(s, sizeof s, r % 3 ? "%05.1f" : "", v); break;
            case 4: snprintf(s, sizeof s, "n/a%d", (int)(r % 7)); break;
            default: snprintf(s, sizeof s, "-%07.3f", v); break;
            }
            text.insert(text.end(), s, s + strlen(s));
            if (k + 1 < fields) text.push_back(',');
        }
    }
    start[n] = text.size();
    Buf<char> t(text.size());
    t.h = text;
    Data d = {t.up(), start.up(), sum.up(), good.up(), bad.up()};
    RUN(csvnum, n, d);
    sum.down(); good.down(); bad.down();
    printf("csvnum %.0f %.0f %.0f\n", total(sum), total(good), total(bad));
}
