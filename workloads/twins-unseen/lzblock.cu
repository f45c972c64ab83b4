// codecs: blocks of a byte-oriented LZ format: literals, then a copy from behind that may overlap itself
#include "../twins/twin.h"
const int BLOCK = 256;
struct Data { const u8 *packed; const int *start; u8 *out; int *size; };
HD int length_of(const u8 *&p, int length) { // 15 goes on in further bytes
    if (length < 15) return length;
    u8 more;
    do { more = *p++; length += more; } while (more == 255);
    return length;
}
HD void lzblock_body(int i, const Data &d) {
    const u8 *p = d.packed + d.start[i], *end = d.packed + d.start[i + 1];
    u8 *out = d.out + i * BLOCK;
    int at = 0;
    while (p < end) {
        int token = *p++, literals = length_of(p, token >> 4);
        if (at + literals > BLOCK) { at = -1; break; }
        for (int k = 0; k < literals; k++) out[at++] = *p++;
        if (p >= end) break; // the last has no copy
        int back = p[0] | p[1] << 8;
        p += 2;
        int copy = length_of(p, token & 15) + 4;
        if (back == 0 || back > at || at + copy > BLOCK) { at = -2; break; }
        for (; copy > 0; copy--, at++) out[at] = out[at - back];
    }
    d.size[i] = at;
}
TWIN_KERNEL(lzblock, "omp parallel for")
static void put(std::vector<u8> &to, int length) {
    for (length -= 15; length >= 255; length -= 255) to.push_back(255);
    to.push_back(length);
}
int main() {
    const int n = 4096;
    std::vector<u8> packed;
    Buf<int> start(n + 1), size(n);
    Buf<u8> out(n * BLOCK);
    for (int i = 0; i < n; i++) {
        start[i] = packed.size();
        int at = 0, kind = mix2(i / 8, 1) % 3, until = BLOCK - mix2(i, 2) % 100; // hardly packed, well, mixed
        for (int k = 0; at < until; k++) {
            u32 r = mix2(i * 256 + k, 3);
            int literals = kind == 1 ? r % 4 : kind == 0 ? 8 + r % 30 : r % 20, copy = 4 + (kind == 1 ? r / 64 % 60 : r / 64 % 9);
            if (at == 0 && literals == 0) literals = 1;
            if (at + literals > until) literals = until - at;
            bool last = at + literals + copy > until;
            packed.push_back((literals < 15 ? literals : 15) << 4 | (last ? 0 : copy - 4 < 15 ? copy - 4 : 15));
            if (literals >= 15) put(packed, literals);
            for (int c = 0; c < literals; c++) packed.push_back('a' + mix2(r, c) % 26);
            at += literals;
            if (last) break;
            int back = 1 + mix2(r, 77) % at;
            packed.push_back(back & 255); packed.push_back(back >> 8);
            if (copy - 4 >= 15) put(packed, copy - 4);
            at += copy;
        }
        if (mix2(i, 4) % 40 == 0) packed[start[i]] |= 0xf0; // damaged
    }
    start[n] = packed.size();
    for (int k = 0; k < 300; k++) packed.push_back(0); // a damaged block may read on
    Buf<u8> p(packed.size());
    p.h = packed;
    Data d = {p.up(), start.up(), out.up(), size.up()};
    RUN(lzblock, n, d);
    out.down(); size.down();
    printf("lzblock %.0f %.0f\n", total(out), total(size));
}
