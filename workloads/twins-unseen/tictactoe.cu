// games: who wins tic-tac-toe from a given position, by recursion that stops at the first win
#include "../twins/twin.h"
struct Data { const u16 *mine, *theirs; signed char *value; int *nodes; };
HD bool line(int b) {
    const u16 LINES[8] = {7, 56, 448, 73, 146, 292, 273, 84};
    for (int k = 0; k < 8; k++)
        if ((b & LINES[k]) == LINES[k]) return true;
    return false;
}
DEVCALL int best(int mine, int theirs, int &nodes) { // for the side to move: 1, 0 or -1
    nodes++;
    if (line(theirs)) return -1;
    int empty = 511 & ~(mine | theirs), value = -1;
    if (!empty) return 0;
    while (empty) {
        int move = empty & -empty;
        empty ^= move;
        int v = -best(theirs, mine | move, nodes);
        if (v > value) value = v;
        if (value == 1) break;
    }
    return value;
}
HD void tictactoe_body(int i, const Data &d) {
    int nodes = 0;
    d.value[i] = best(d.mine[i], d.theirs[i], nodes);
    d.nodes[i] = nodes;
}
TWIN_KERNEL(tictactoe, "omp parallel for schedule(dynamic, 16)")
int main() {
    DEEP_STACK;
    const int n = 4096;
    Buf<u16> a(n), b(n);
    Buf<signed char> value(n);
    Buf<int> nodes(n);
    for (int i = 0; i < n; i++) {
        int stones = 3 + mix2(i, 1) % 4, m = 0, t = 0;
        for (int k = 0; k < stones; k++) {
            int at = mix2(i * 16 + k, 2) % 9;
            while ((m | t) >> at & 1) at = (at + 1) % 9;
            if (k & 1) m |= 1 << at;
            else t |= 1 << at;
        }
        a[i] = m; b[i] = t;
    }
    Data d = {a.up(), b.up(), value.up(), nodes.up()};
    RUN(tictactoe, n, d);
    value.down(); nodes.down();
    printf("tictactoe %.0f %.0f\n", total(value), total(nodes));
}
