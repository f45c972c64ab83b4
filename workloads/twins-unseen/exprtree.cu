// compilers: expression trees, a formula for 64 rows of a table, walked by a stack of places; && and || skip, a division by 0 gives up
#include "../twins/twin.h"
struct Node { u8 op; short left, right; int value; };
enum { CONSTANT, VARIABLE, ADD, SUB, MUL, DIV, LESS, AND, OR, NEGATE, MINIMUM };
struct Data { const Node *nodes; const int *root; const int *variables; int *out; };
HD void exprtree_body(int i, const Data &d) {
    const Node *nodes = d.nodes + d.root[i];
    int places[24], values[24], top = 0, have = 0, done[24];
    places[0] = 0; done[0] = 0;
    bool failed = false;
    while (top >= 0 && !failed) {
        const Node &q = nodes[places[top]];
        if (q.op == CONSTANT || q.op == VARIABLE) {
            values[have++] = q.op == CONSTANT ? q.value : d.variables[(q.value + i) & 1023];
            top--;
            continue;
        }
        int stage = done[top]++;
        if (stage == 0) { top++; places[top] = q.left; done[top] = 0; continue; }
        if (stage == 1 && q.op != NEGATE) {
            bool skip = (q.op == AND && !values[have - 1]) || (q.op == OR && values[have - 1]);
            if (!skip) { top++; places[top] = q.right; done[top] = 0; continue; }
            values[have - 1] = q.op == OR;
            top--;
            continue;
        }
        if (q.op == NEGATE) { values[have - 1] = -values[have - 1]; top--; continue; }
        int b = values[--have], a = values[have - 1], v = 0;
        switch (q.op) {
        case ADD: v = (a + b) & 0xffff; break;
        case SUB: v = (a - b) & 0xffff; break;
        case MUL: v = (a & 0xff) * (b & 0xff); break;
        case DIV: if (b == 0) failed = true; else v = a / b; break;
        case LESS: v = a < b; break;
        case AND: case OR: v = b != 0; break;
        case MINIMUM: v = a < b ? a : b; break;
        }
        values[have - 1] = v;
        top--;
    }
    d.out[i] = failed ? -1 : values[0];
}
TWIN_KERNEL(exprtree, "omp parallel for schedule(dynamic, 64)")
static int grow(std::vector<Node> &to, size_t base, u32 seed, int depth) {
    int at = to.size() - base;
    to.push_back(Node());
    u32 r = mix(seed);
    Node q = {(u8)(r % 2), 0, 0, (int)(r / 16 % 200)};
    if (depth > 0 && (depth > 4 || r / 4096 % 5)) {
        q.op = ADD + r / 64 % 9;
        q.left = grow(to, base, seed * 2 + 1, depth - 1);
        if (q.op != NEGATE) q.right = grow(to, base, seed * 2 + 2, depth - 1);
    }
    to[base + at] = q;
    return at;
}
int main() {
    const int n = 4096;
    std::vector<Node> all;
    Buf<int> root(n), variables(1024), out(n);
    for (int i = 0; i < n; i++) {
        if (i % 64 == 0) { root[i] = all.size(); grow(all, all.size(), mix2(i, 1) >> 8, 4 + mix2(i, 2) % 3); }
        else root[i] = root[i - 1];
    }
    for (int k = 0; k < 1024; k++) variables[k] = mix2(k, 3) % 300;
    Buf<Node> nodes(all.size());
    nodes.h = all;
    Data d = {nodes.up(), root.up(), variables.up(), out.up()};
    RUN(exprtree, n, d);
    out.down();
    printf("exprtree %.0f\n", total(out));
}
