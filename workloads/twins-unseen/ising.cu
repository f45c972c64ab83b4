// physics: spins of a magnet on a chessboard, its colours in turn, flipped by the rule of Metropolis
#include "../twins/twin.h"
struct Data { signed char *spin; int w, h, colour, sweep; float beta, field; };
HD void ising_body(int y, int pair, const Data &d) {
    int x = 2 * pair + ((y + d.colour) & 1), at = y * d.w + x;
    int up = y > 0 ? y - 1 : d.h - 1, down = y + 1 < d.h ? y + 1 : 0;
    int left = x > 0 ? x - 1 : d.w - 1, right = x + 1 < d.w ? x + 1 : 0;
    int own = d.spin[at], around = d.spin[up * d.w + x] + d.spin[down * d.w + x] + d.spin[y * d.w + left] + d.spin[y * d.w + right];
    float cost = 2 * own * (around + d.field);
    if (cost <= 0) { d.spin[at] = -own; return; }
    float chance = expf(-d.beta * cost);
    if (unit(mix2(at, d.sweep)) < chance) d.spin[at] = -own;
}
TWIN_KERNEL2(ising, "omp parallel for collapse(2)")
int main() {
    const int w = 160, h = 128;
    Buf<signed char> s(w * h);
    for (int k = 0; k < w * h; k++) s[k] = mix2(k, 1) % 3 ? 1 : -1;
    Data d = {s.up(), w, h, 0, 0, 0.42f, 0.05f};
    for (int sweep = 0; sweep < 12; sweep++)
        for (int colour = 0; colour < 2; colour++) {
            d.colour = colour; d.sweep = sweep;
            RUN2(ising, h, w / 2, d);
        }
    s.down();
    int bonds = 0;
    for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) bonds += s[y * w + x] == s[y * w + (x + 1) % w];
    printf("ising %.0f %d\n", total(s) / 100, bonds / 100);
}
