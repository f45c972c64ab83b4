// text: how often phrases occur, by two binary searches in an array of suffixes
#include "../twins/twin.h"
#include <algorithm>
struct Data { const u8 *text; const int *suffix; int size; const int *ask, *length; int *out; };
// How a phrase at `at` compares with a suffix: negative, 0 where the suffix begins with it, or positive.
HD int compare(const Data &d, int at, int length, int suffix) {
    for (int k = 0; k < length; k++) {
        if (suffix + k >= d.size) return 1;
        int difference = d.text[at + k] - d.text[suffix + k];
        if (difference) return difference;
    }
    return 0;
}
HD int bound(const Data &d, int at, int length, bool upper) {
    int lo = 0, hi = d.size;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2, c = compare(d, at, length, d.suffix[mid]);
        if (c > 0 || (upper && c == 0)) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}
HD void suffixes_body(int i, const Data &d) {
    int at = d.ask[i], length = d.length[i];
    int first = bound(d, at, length, false);
    if (first == d.size || compare(d, at, length, d.suffix[first])) { d.out[i] = 0; return; }
    d.out[i] = bound(d, at, length, true) - first;
}
TWIN_KERNEL(suffixes, "omp parallel for")
int main() {
    const int n = 8192, size = 6000;
    Buf<u8> text(size + n);
    Buf<int> suffix(size), ask(n), length(n), out(n);
    for (int k = 0; k < size; k++) // phrases of a small stock, with misprints
        text[k] = mix2(k, 1) % 40 ? "acgt"[mix2(mix2(k / 24, 2) % 60, k % 24) % 4] : 'n';
    for (int k = size; k < size + n; k++) text[k] = "acgt"[mix2(k, 3) % 4]; // phrases not of the text
    for (int k = 0; k < size; k++) suffix[k] = k;
    const u8 *t = text.h.data();
    std::sort(suffix.h.begin(), suffix.h.end(), [&](int a, int b) { return std::lexicographical_compare(t + a, t + size, t + b, t + size); });
    for (int i = 0; i < n; i++) {
        u32 r = mix2(i, 4);
        length[i] = 3 + r % 20;
        ask[i] = r / 32 % 4 ? (int)(r / 128 % (size - 40)) : size + (int)(r / 128 % (n - 40));
    }
    Data d = {text.up(), suffix.up(), size, ask.up(), length.up(), out.up()};
    RUN(suffixes, n, d);
    out.down();
    printf("suffixes %.0f\n", total(out));
}
