// codecs: blocks of a canonical Huffman code, decoded a bit at a time by the first code of each length
#include "../twins/twin.h"
#include <algorithm>
const int MOST = 12;
struct Code { int count[MOST + 1]; u8 symbols[64]; };
struct Data { const u8 *bits; const int *start, *symbols; Code code; u32 *sum; };
HD int symbol(const Code &code, const u8 *bits, int &at) {
    int word = 0, first = 0, index = 0;
    for (int length = 1; length <= MOST; length++) {
        word |= bits[at >> 3] >> (7 - (at & 7)) & 1;
        at++;
        int count = code.count[length];
        if (word - first < count) return code.symbols[index + word - first];
        index += count;
        first = (first + count) << 1;
        word <<= 1;
    }
    return -1;
}
HD void huffman_body(int i, const Data &d) {
    int at = d.start[i];
    u32 sum = 0;
    for (int k = 0; k < d.symbols[i]; k++) {
        int s = symbol(d.code, d.bits, at);
        if (s < 0) { sum = ~0u; break; }
        sum = sum * 31 + s;
    }
    d.sum[i] = sum;
}
TWIN_KERNEL(huffman, "omp parallel for")
int main() {
    const int n = 4096;
    Code code = {{0, 0, 2, 2, 2, 3, 2, 2, 2, 2, 4, 8, 8}, {}}; // lengths; the shortest for the commonest
    int codes[40], lengths[40], all = 0, word = 0;
    for (int l = 1; l <= MOST; l++) {
        for (int k = 0; k < code.count[l] && all < 40; k++) { codes[all] = word++; lengths[all] = l; code.symbols[all] = (all * 7 + 3) & 63; all++; }
        word <<= 1;
    }
    Buf<int> start(n), symbols(n);
    Buf<u32> sum(n);
    std::vector<u8> bits;
    int at = 0;
    for (int i = 0; i < n; i++) {
        start[i] = at;
        symbols[i] = i % 3 ? 48 : 24 + mix2(i, 1) % 25;
        for (int k = 0; k < symbols[i]; k++) {
            float u = unit(mix2(i * 64 + k, 2));
            int s = std::min(all - 1, (int)(u * u * (4 + mix2(i, 3) % 37)));
            for (int b = lengths[s] - 1; b >= 0; b--, at++) {
                if (at % 8 == 0) bits.push_back(0);
                bits.back() |= (codes[s] >> b & 1) << (7 - at % 8);
            }
        }
    }
    bits.push_back(0); bits.push_back(0);
    Buf<u8> b(bits.size());
    b.h = bits;
    Data d = {b.up(), start.up(), symbols.up(), code, sum.up()};
    RUN(huffman, n, d);
    sum.down();
    printf("huffman %.0f\n", total(sum));
}
