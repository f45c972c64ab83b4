// codecs: adaptive binary range decoding of bytes, as LZMA has it: a tree of 255 chances for each stream
#include "../twins/twin.h"
struct Data { const u8 *in; const int *start; u16 *chances; int bytes; u32 *sum; };
HD void rangedec_body(int i, const Data &d) {
    const u8 *p = d.in + d.start[i];
    u16 *chance = d.chances + i * 256;
    u32 range = ~0u, code = 0, sum = 0;
    for (int k = 0; k < 256; k++) chance[k] = 1024;
    for (int k = 0; k < 4; k++) code = code << 8 | *p++;
    for (int k = 0; k < d.bytes; k++) {
        int node = 1;
        do {
            u32 c = chance[node], bound = (range >> 11) * c;
            if (code < bound) {
                range = bound;
                chance[node] = c + ((2048 - c) >> 4);
                node <<= 1;
            } else {
                range -= bound;
                code -= bound;
                chance[node] = c - (c >> 4);
                node = node << 1 | 1;
            }
            if (range < 1u << 24) {
                range <<= 8;
                code = code << 8 | *p++;
            }
        } while (node < 256);
        if (node == 256 + 255) break; // the end mark
        sum = sum * 33 + (node & 255);
    }
    d.sum[i] = sum;
}
TWIN_KERNEL(rangedec, "omp parallel for")
struct Encoder {
    std::vector<u8> &out;
    u64 low = 0;
    u32 range = ~0u, held = 1;
    u8 cache = 0;
    bool first = true;
    void shift() {
        if ((u32)low < 0xff000000u || low >> 32) {
            u8 carry = low >> 32, c = cache;
            do { if (!first) out.push_back(c + carry); first = false; c = 255; } while (--held);
            cache = low >> 24;
        }
        held++;
        low = (u32)low << 8;
    }
    void bit(u16 &c, int b) {
        u32 bound = (range >> 11) * c;
        if (b) { low += bound; range -= bound; c -= c >> 4; } else { range = bound; c += (2048 - c) >> 4; }
        while (range < 1u << 24) { range <<= 8; shift(); }
    }
};
int main() {
    const int n = 2048, bytes = 40;
    std::vector<u8> packed;
    Buf<int> start(n);
    Buf<u16> chances(n * 256);
    Buf<u32> sum(n);
    for (int i = 0; i < n; i++) {
        start[i] = packed.size();
        std::vector<u16> c(256, 1024);
        Encoder e = {packed};
        int length = mix2(i, 1) % 4 ? bytes : 10 + mix2(i, 2) % 30;
        for (int k = 0; k <= length; k++) {
            int v = k == length ? 255 : (int)("etaoin shrdlu"[mix2(i * 64 + k, 3) % 13]), node = 1;
            for (int b = 7; b >= 0; b--) { int bit = v >> b & 1; e.bit(c[node], bit); node = node << 1 | bit; }
        }
        for (int k = 0; k < 5; k++) e.shift();
    }
    Buf<u8> p(packed.size());
    p.h = packed;
    Data d = {p.up(), start.up(), chances.up(), bytes, sum.up()};
    RUN(rangedec, n, d);
    sum.down();
    printf("rangedec %.0f\n", total(sum));
}
