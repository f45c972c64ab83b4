// games: random games of connect four to their end from a position, boards as bits; wins of the side to move
#include "../twins/twin.h"
struct Data { const u64 *mine, *all; int games; int *won, *moves; };
HD bool four(u64 b) { // 7 columns of 6 and a spare bit
    const int ways[4] = {1, 6, 7, 8};
    for (int k = 0; k < 4; k++) {
        u64 m = b & b >> ways[k];
        if (m & m >> 2 * ways[k]) return true;
    }
    return false;
}
HD void connect_body(int i, const Data &d) {
    const u64 top = 1ull << 5 | 1ull << 12 | 1ull << 19 | 1ull << 26 | 1ull << 33 | 1ull << 40 | 1ull << 47;
    u32 seed = mix2(i, 9) | 1;
    int won = 0, moves = 0;
    for (int game = 0; game < d.games; game++) {
        u64 own = d.mine[i], all = d.all[i];
        bool first = true; // whether the side to move is the one that began
        while ((all & top) != top) {
            int column = next(seed) % 7;
            while (all >> (column * 7 + 5) & 1) column = column == 6 ? 0 : column + 1;
            u64 stone = (all + (1ull << column * 7)) & ~all & 63ull << column * 7;
            all |= stone;
            own |= stone;
            moves++;
            if (four(own)) { won += first ? 1 : -1; break; }
            own = all ^ own; // the other side
            first = !first;
        }
    }
    d.won[i] = won; d.moves[i] = moves;
}
TWIN_KERNEL(connect, "omp parallel for")
int main() {
    const int n = 2048;
    Buf<u64> mine(n), all(n);
    Buf<int> won(n), moves(n);
    for (int i = 0; i < n; i++) {
        u64 own = 0, both = 0;
        int stones = mix2(i, 1) % 16 * 2;
        for (int k = 0; k < stones; k++) {
            int c = mix2(i * 32 + k, 2) % 7;
            if (both >> (c * 7 + 5) & 1) continue;
            u64 stone = (both + (1ull << c * 7)) & ~both & 63ull << c * 7;
            both |= stone;
            if (k & 1) own |= stone;
        }
        mine[i] = own; all[i] = both;
    }
    Data d = {mine.up(), all.up(), 8, won.up(), moves.up()};
    RUN(connect, n, d);
    won.down(); moves.down();
    printf("connect %.0f %.0f\n", total(won), total(moves));
}
