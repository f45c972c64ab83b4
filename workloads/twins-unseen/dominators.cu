// compilers: dominators of small flow graphs: a depth-first order by a stack, then rounds of intersecting predecessors
#include "../twins/twin.h"
const int MOST = 24;
struct Data { const u8 *succ; const int *blocks; u8 *order, *number; int *out; }; // two successors a block, 255 is none
HD void number_body(int g, const Data &d) {
    const u8 *succ = d.succ + g * MOST * 2;
    u8 *order = d.order + g * MOST, *number = d.number + g * MOST, stack[MOST], turn[MOST];
    int top = 0, post = 0;
    u32 seen = 1;
    for (int b = 0; b < MOST; b++) number[b] = 255;
    stack[0] = 0; turn[0] = 0;
    while (top >= 0) {
        int b = stack[top];
        if (turn[top] == 2) { order[post] = b; number[b] = post++; top--; continue; }
        int to = succ[2 * b + turn[top]++];
        if (to == 255 || seen >> to & 1) continue;
        seen |= 1u << to;
        stack[++top] = to;
        turn[top] = 0;
    }
}
HD void dominate_body(int g, const Data &d) {
    const u8 *succ = d.succ + g * MOST * 2, *order = d.order + g * MOST, *number = d.number + g * MOST;
    int n = d.blocks[g], reached = number[0] + 1, rounds = 0;
    u8 idom[MOST]; // by post-order numbers
    for (int k = 0; k < n; k++) idom[k] = 255;
    idom[reached - 1] = reached - 1;
    for (bool changed = true; changed; rounds++) {
        changed = false;
        for (int k = reached - 2; k >= 0; k--) {
            int b = order[k], fresh = 255;
            for (int p = 0; p < n; p++) {
                if (succ[2 * p] != b && succ[2 * p + 1] != b) continue;
                int q = number[p];
                if (q == 255 || idom[q] == 255) continue;
                if (fresh == 255) { fresh = q; continue; }
                int other = q;
                while (fresh != other) {
                    while (fresh < other) fresh = idom[fresh];
                    while (other < fresh) other = idom[other];
                }
            }
            if (idom[k] != fresh) { idom[k] = fresh; changed = true; }
        }
    }
    int sum = 0;
    for (int k = 0; k < reached; k++) sum += (k + 1) * idom[k];
    d.out[g] = sum * 8 + rounds;
}
TWIN_KERNEL(number, "omp parallel for")
TWIN_KERNEL(dominate, "omp parallel for schedule(dynamic, 32)")
int main() {
    const int n = 4096;
    Buf<u8> succ(n * MOST * 2, (u8)255), order(n * MOST), numbers(n * MOST);
    Buf<int> blocks(n), out(n);
    for (int g = 0; g < n; g++) {
        blocks[g] = 6 + mix2(g, 1) % (MOST - 5);
        for (int b = 0; b < blocks[g]; b++) {
            u32 r = mix2(g * 32 + b, 2);
            if (b + 1 < blocks[g] && r % 9) succ[(g * MOST + b) * 2] = b + 1;
            if (r / 16 % 2) succ[(g * MOST + b) * 2 + 1] = r / 32 % 3 ? (b + r / 128 % 8) % blocks[g] : r / 128 % (b + 1);
        }
    }
    Data d = {succ.up(), blocks.up(), order.up(), numbers.up(), out.up()};
    RUN(number, n, d);
    RUN(dominate, n, d);
    out.down();
    printf("dominators %.0f\n", total(out));
}
