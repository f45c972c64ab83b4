// codecs: blocks of a Huffman code, decoded by a table of twelve bits that has symbols and lengths
#include "../twins/twin.h"
#include <algorithm>
const int MOST = 12;
struct Data { const u8 *bits; const int *start, *symbols; const u16 *table; u32 *sum; int *used; };
HD void huffman_body(int i, const Data &d) {
    int at = d.start[i], left = d.symbols[i];
    u32 sum = 0;
    while (left-- > 0) {
        const u8 *p = d.bits + (at >> 3);
        u32 word = (u32)p[0] << 16 | p[1] << 8 | p[2];
        int entry = d.table[word >> (24 - MOST - (at & 7)) & ((1 << MOST) - 1)], length = entry & 15;
        if (length == 0) { sum = ~0u; break; } // no code begins so
        at += length;
        sum = sum * 31 + (entry >> 4);
    }
    d.sum[i] = sum; d.used[i] = at - d.start[i];
}
TWIN_KERNEL(huffman, "omp parallel for")
int main() {
    const int n = 8192;
    const int count[MOST + 1] = {0, 0, 2, 2, 2, 2, 1, 2, 2, 2, 4, 8, 8}; // symbols of each length
    int codes[40], lengths[40], all = 0, word = 0;
    Buf<u16> table(1 << MOST);
    for (int l = 1; l <= MOST; l++) {
        for (int k = 0; k < count[l] && all < 40; k++, word++) {
            codes[all] = word; lengths[all] = l;
            for (int low = 0; low < 1 << (MOST - l); low++) table[(word << (MOST - l)) + low] = ((all * 7 + 3) & 63) << 4 | l;
            all++;
        }
        word <<= 1;
    }
    Buf<int> start(n), symbols(n), used(n);
    Buf<u32> sum(n);
    std::vector<u8> bits;
    int at = 0;
    for (int i = 0; i < n; i++) {
        start[i] = at;
        symbols[i] = mix2(i, 1) % 50 ? 48 : 10 + mix2(i, 1) % 38;
        for (int k = 0; k < symbols[i]; k++) {
            float u = unit(mix2(i * 64 + k, 2));
            int s = std::min(all - 1, (int)(u * u * (4 + mix2(i, 3) % 37)));
            for (int b = lengths[s] - 1; b >= 0; b--, at++) {
                if (at % 8 == 0) bits.push_back(0);
                bits.back() |= (codes[s] >> b & 1) << (7 - at % 8);
            }
        }
    }
    for (int k = 0; k < 3; k++) bits.push_back(0);
    Buf<u8> b(bits.size());
    b.h = bits;
    Data d = {b.up(), start.up(), symbols.up(), table.up(), sum.up(), used.up()};
    RUN(huffman, n, d);
    sum.down(); used.down();
    printf("huffman %.0f %.0f %d\n", total(sum), total(used), at);
}
