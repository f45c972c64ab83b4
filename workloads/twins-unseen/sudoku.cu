// games: sudoku by backtracking: the next empty cell, its lowest candidate not yet tried, masks of rows, columns, boxes
#include "../twins/twin.h"
struct Data { const u8 *puzzles; int limit; int *solved, *steps; };
HD void sudoku_body(int i, const Data &d) {
    const u8 *p = d.puzzles + i * 81;
    u16 row[9], column[9], box[9], tried[64];
    u8 cells[64], digit[64];
    int empty = 0, steps = 0, at = 0;
    for (int k = 0; k < 9; k++) row[k] = column[k] = box[k] = 0;
    for (int k = 0; k < 81; k++) {
        int y = k / 9, x = k % 9, b = y / 3 * 3 + x / 3;
        if (!p[k]) { cells[empty++] = k; continue; }
        u16 bit = 1 << (p[k] - 1);
        row[y] |= bit; column[x] |= bit; box[b] |= bit;
    }
    tried[0] = 0;
    while (at >= 0 && at < empty && steps < d.limit) {
        int k = cells[at], y = k / 9, x = k % 9, b = y / 3 * 3 + x / 3;
        int open = 511 & ~(row[y] | column[x] | box[b] | tried[at]);
        steps++;
        if (!open) { // back to the cell before
            if (--at < 0) break;
            k = cells[at]; y = k / 9; x = k % 9; b = y / 3 * 3 + x / 3;
            u16 off = ~(1 << digit[at]);
            row[y] &= off; column[x] &= off; box[b] &= off;
            continue;
        }
        int v = 0;
        while (!(open >> v & 1)) v++;
        u16 bit = 1 << v;
        tried[at] |= bit;
        digit[at] = v;
        row[y] |= bit; column[x] |= bit; box[b] |= bit;
        if (++at < empty) tried[at] = 0;
    }
    int sum = 0;
    if (at == empty)
        for (int k = 0; k < empty; k++) sum += digit[k] * (cells[k] % 7 + 1);
    d.solved[i] = sum; d.steps[i] = steps;
}
TWIN_KERNEL(sudoku, "omp parallel for schedule(dynamic, 8)")
int main() {
    const int n = 2048;
    Buf<u8> p(n * 81);
    Buf<int> solved(n), steps(n);
    for (int i = 0; i < n; i++) {
        int blanks = 42 + mix2(i, 1) % 34;
        for (int k = 0; k < 81; k++) { // a shifted pattern with digits renamed, rows and columns of a band exchanged
            int y = k / 9, x = k % 9, yy = y / 3 * 3 + (y + mix2(i, 2)) % 3, xx = x / 3 * 3 + (x + mix2(i, 3)) % 3;
            int v = (yy * 3 + yy / 3 + xx) % 9;
            p[i * 81 + k] = (v * (1 + mix2(i, 4) % 2 * 3) + mix2(i, 5)) % 9 + 1;
        }
        for (int k = 0; k < blanks; k++) p[i * 81 + mix2(i * 128 + k, 6) % 81] = 0;
    }
    Data d = {p.up(), 2000, solved.up(), steps.up()};
    RUN(sudoku, n, d);
    solved.down(); steps.down();
    printf("sudoku %.0f %.0f\n", total(solved), total(steps));
}
