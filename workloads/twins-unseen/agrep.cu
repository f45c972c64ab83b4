// text: a word with up to two errors in windows of a text: sets of states as bits, one word for each number of errors
#include "../twins/twin.h"
struct Data { const u8 *text; const u32 *mask; int window, overlap, pattern; int *out; };
HD void agrep_body(int i, const Data &d) {
    const u8 *p = d.text + i * d.window;
    u32 exact = 1, one = 3, two = 7, last = 1u << d.pattern;
    int hits = 0, best = 3;
    for (int k = 0; k < d.window + d.overlap; k++) {
        u32 m = d.mask[p[k] & 31], exact_was = exact, one_was = one;
        exact = ((exact << 1) & m) | 1;
        one = ((one << 1) & m) | exact_was | exact_was << 1 | exact << 1 | 1;
        two = ((two << 1) & m) | one_was | one_was << 1 | one << 1 | 1;
        if (k < d.pattern) continue;
        if (two & last) {
            hits++;
            int errors = exact & last ? 0 : one & last ? 1 : 2;
            if (errors < best) best = errors;
        }
    }
    d.out[i] = hits * 4 + best;
}
TWIN_KERNEL(agrep, "omp parallel for")
int main() {
    const int n = 8192, window = 48;
    const char *word = "reconverge";
    const int m = strlen(word);
    Buf<u8> text(n * window + 2 * m);
    Buf<u32> mask(32);
    Buf<int> out(n);
    for (int k = 0; k < m; k++) mask[word[k] & 31] |= 2u << k;
    for (size_t k = 0; k < text.size(); k++) text[k] = 'a' + mix2(k, 1) % 26;
    for (int at = 3; at + m < n * window; at += 20 + mix2(at, 2) % 150)
        for (int k = 0; k < m; k++)
            if (mix2(at + k, 3) % 7) text[at + k] = word[k];
    Data d = {text.up(), mask.up(), window, m, m, out.up()};
    RUN(agrep, n, d);
    out.down();
    printf("agrep %.0f\n", total(out));
}
