// games: moves of one side on chess boards of bits: sliders ray by ray, knights and king by shifts, pawns at once
#include "../twins/twin.h"
struct Board { u64 pawns, knights, sliders[2], king, own, other; }; // bishops, rooks
struct Data { const Board *boards; int *score; };
HD int bits(u64 b) {
    int n = 0;
    for (; b; b &= b - 1) n++;
    return n;
}
HD int lowest(u64 b) { return bits((b & (0 - b)) - 1); }
HD u64 slide(int from, int dx, int dy, u64 all) {
    u64 to = 0;
    int x = (from & 7) + dx, y = (from >> 3) + dy;
    for (; x >= 0 && x < 8 && y >= 0 && y < 8; x += dx, y += dy) {
        u64 bit = 1ull << (y * 8 + x);
        to |= bit;
        if (all & bit) break;
    }
    return to;
}
HD int movegen_body(int i, const Data &d) {
    const u64 not_a = 0xfefefefefefefefeull, not_h = 0x7f7f7f7f7f7f7f7full;
    const Board &b = d.boards[i];
    u64 all = b.own | b.other, reached = 0;
    int moves = 0, captures = 0;
    u64 one = b.pawns << 8 & ~all, two = (one & 0xff0000) << 8 & ~all, hit = b.other & (((b.pawns & not_a) << 7) | ((b.pawns & not_h) << 9));
    moves += bits(one) + bits(two) + bits(hit);
    captures += bits(hit);
    for (u64 left = b.knights; left; left &= left - 1) {
        u64 k = left & (0 - left), near1 = (k & not_a) >> 1 | (k & not_h) << 1;
        u64 near2 = (k & not_a & not_a << 1) >> 2 | (k & not_h & not_h >> 1) << 2;
        u64 to = (near1 << 16 | near1 >> 16 | near2 << 8 | near2 >> 8) & ~b.own;
        moves += bits(to);
        captures += bits(to & b.other);
        reached |= to;
    }
    for (int kind = 0; kind < 2; kind++)
        for (u64 left = b.sliders[kind]; left; left &= left - 1) {
            int from = lowest(left);
            u64 to = kind ? slide(from, 1, 0, all) | slide(from, -1, 0, all) | slide(from, 0, 1, all) | slide(from, 0, -1, all)
                          : slide(from, 1, 1, all) | slide(from, -1, 1, all) | slide(from, 1, -1, all) | slide(from, -1, -1, all);
            to &= ~b.own;
            moves += bits(to);
            captures += bits(to & b.other);
            reached |= to;
        }
    if (b.king) {
        u64 side = b.king | (b.king & not_a) >> 1 | (b.king & not_h) << 1, to = (side | side << 8 | side >> 8) & ~b.own;
        moves += bits(to);
    }
    return d.score[i] = moves * 4 + captures + bits(reached & 0x1818000000ull) * 2;
}
TWIN_SUM(movegen, int, "omp parallel for reduction(+ : s)")
int main() {
    const int n = 8192;
    Buf<Board> boards(n);
    Buf<int> score(n), sum(1);
    for (int i = 0; i < n; i++) {
        Board b = {};
        int pieces = 6 + mix2(i, 1) % 26;
        for (int k = 0; k < pieces; k++) {
            u32 r = mix2(i * 32 + k, 2);
            u64 bit = 1ull << (r % 64);
            if ((b.own | b.other) & bit) continue;
            if (r / 64 % 2) { b.other |= bit; continue; }
            b.own |= bit;
            if (k == 0 || !b.king) b.king = bit;
            else if (r / 128 % 2 && r % 64 > 7 && r % 64 < 56) b.pawns |= bit;
            else if (r / 256 % 3 == 0) b.knights |= bit;
            else b.sliders[r / 256 % 3 - 1] |= bit;
        }
        boards[i] = b;
    }
    Data d = {boards.up(), score.up()};
    sum.up();
    RUN_INTO(movegen, n, d, sum);
    score.down();
    printf("movegen %d %.0f\n", sum[0], total(score));
}
