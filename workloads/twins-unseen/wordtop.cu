// text: the most frequent word of each paragraph, by a small table of hashes that a thread keeps for itself
#include "../twins/twin.h"
struct Data { const u8 *text; const int *start; int *out; };
HD bool letter(u8 c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '\''; }
HD void wordtop_body(int i, const Data &d) {
    const int SLOTS = 32;
    u32 keys[SLOTS];
    u8 counts[SLOTS];
    for (int k = 0; k < SLOTS; k++) { keys[k] = 0; counts[k] = 0; }
    int at = d.start[i], end = d.start[i + 1], words = 0, lost = 0;
    while (at < end) {
        while (at < end && !letter(d.text[at])) at++;
        if (at == end) break;
        u32 h = 2166136261u;
        int from = at;
        for (; at < end && letter(d.text[at]); at++) {
            u8 c = d.text[at];
            if (c >= 'A' && c <= 'Z') c += 32;
            h = (h ^ c) * 16777619u;
        }
        if (at - from < 2) continue; // "a" and "I" are no words here
        words++;
        if (!h) h = 1;
        int slot = h % SLOTS, probes = 0;
        while (keys[slot] && keys[slot] != h && probes < 8) { slot = (slot + 1) % SLOTS; probes++; }
        if (probes == 8) { lost++; continue; }
        keys[slot] = h;
        if (counts[slot] < 255) counts[slot]++;
    }
    int top = 0;
    for (int k = 1; k < SLOTS; k++)
        if (counts[k] > counts[top] || (counts[k] == counts[top] && keys[k] > keys[top])) top = k;
    d.out[i] = counts[top] * 4096 + words * 16 + (lost < 15 ? lost : 15);
}
TWIN_KERNEL(wordtop, "omp parallel for schedule(dynamic, 16)")
int main() {
    const int n = 4096;
    std::vector<u8> text;
    Buf<int> start(n + 1), out(n);
    for (int i = 0; i < n; i++) {
        start[i] = text.size();
        int words = 6 + mix2(i, 1) % 30, themes = 3 + mix2(i, 2) % 40;
        for (int k = 0; k < words; k++) {
            u32 r = mix2(i * 64 + k, 3), word = mix2(r % themes, i / 16);
            int length = 1 + word % 9;
            for (int c = 0; c < length; c++) text.push_back((c == 0 && r / 64 % 8 == 0 ? 'A' : 'a') + mix2(word, c) % 26);
            text.push_back(r / 512 % 12 == 0 ? ',' : ' ');
            if (text.back() == ',') text.push_back(' ');
        }
    }
    start[n] = text.size();
    Buf<u8> t(text.size());
    t.h = text;
    Data d = {t.up(), start.up(), out.up()};
    RUN(wordtop, n, d);
    out.down();
    printf("wordtop %.0f\n", total(out));
}
