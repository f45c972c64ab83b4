// codecs: Golomb-Rice residuals of sound, the parameter follows the mean; predicted of order 0 to 2 as a block's head says
#include "../twins/twin.h"
struct Bits { const u32 *words; int at; };
struct Data { const u32 *words; const int *start; int samples; int *peak, *last; };
HD u32 take(Bits &b, int count) {
    u32 v = 0;
    while (count > 0) {
        int room = 32 - (b.at & 31), now = count < room ? count : room;
        u32 part = b.words[b.at >> 5] >> (room - now) & (now == 32 ? ~0u : (1u << now) - 1);
        v = now == 32 ? part : v << now | part;
        b.at += now;
        count -= now;
    }
    return v;
}
HD void golomb_body(int i, const Data &d) {
    Bits b = {d.words, d.start[i]};
    int order = take(b, 2), a = 0, before = 0, peak = 0;
    u32 mean = 16;
    for (int k = 0; k < d.samples; k++) {
        int shift = 0;
        while ((mean >> 2) >> shift > 1) shift++;
        u32 high = 0;
        while (high < 20 && !take(b, 1)) high++;
        u32 code = high == 20 ? take(b, 16) : high << shift | take(b, shift);
        mean += code - (mean >> 2);
        int residual = (int)(code >> 1) ^ -(int)(code & 1), guess;
        switch (order) {
        case 0: guess = 0; break;
        case 1: guess = a; break;
        default: guess = 2 * a - before;
        }
        before = a;
        a = guess + residual;
        int size = a < 0 ? -a : a;
        if (size > peak) peak = size;
    }
    d.peak[i] = peak; d.last[i] = a;
}
TWIN_KERNEL(golomb, "omp parallel for")
int main() {
    const int n = 4096, samples = 48;
    std::vector<u32> words;
    int at = 0;
    auto put = [&](u32 v, int count) {
        for (int k = count - 1; k >= 0; k--, at++) {
            if (at % 32 == 0) words.push_back(0);
            words.back() |= (v >> k & 1) << (31 - at % 32);
        }
    };
    Buf<int> start(n), peak(n), last(n);
    for (int i = 0; i < n; i++) {
        start[i] = at;
        put(mix2(i, 1) % 3, 2);
        u32 mean = 16, loud = 1 + mix2(i, 2) % 9;
        for (int k = 0; k < samples; k++) {
            u32 r = mix2(i * 64 + k, 3), code = (r & 65535) >> (15 - loud + r / 65536 % 7 * (loud > 3)), shift = 0;
            if (k % 16 == 0) loud = 1 + (loud + r / 65536 % 3) % 9;
            while ((mean >> 2) >> shift > 1) shift++;
            if (code >> shift < 20) { for (u32 h = 0; h < code >> shift; h++) put(0, 1); put(1, 1); put(code, shift); }
            else { put(0, 20); put(code, 16); }
            mean += code - (mean >> 2);
        }
    }
    words.push_back(0); words.push_back(0);
    Buf<u32> w(words.size());
    w.h = words;
    Data d = {w.up(), start.up(), samples, peak.up(), last.up()};
    RUN(golomb, n, d);
    peak.down(); last.down();
    printf("golomb %.0f %.0f\n", total(peak), total(last));
}
