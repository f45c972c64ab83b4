// graphs: k-core: vertices of too low degree are marked, then peeled off their neighbours, round after round
#include "../twins/twin.h"
enum { ALIVE, LEAVING, GONE };
struct Data { const int *row, *col; int *degree, *state, *core; int k; int *left; };
HD void mark_body(int i, const Data &d) {
    if (d.state[i] != ALIVE) return;
    if (d.degree[i] < d.k) {
        d.state[i] = LEAVING;
        atomic_add(d.left, 1);
    } else d.core[i] = d.k;
}
HD void peel_body(int i, const Data &d) {
    if (d.state[i] != LEAVING) return;
    for (int e = d.row[i]; e < d.row[i + 1]; e++) {
        int v = d.col[e];
        if (d.state[v] == GONE) continue;
        atomic_add(&d.degree[v], -1);
    }
}
HD void bury_body(int i, const Data &d) {
    if (d.state[i] == LEAVING) d.state[i] = GONE;
}
TWIN_KERNEL(mark, "omp parallel for")
TWIN_KERNEL(peel, "omp parallel for schedule(dynamic, 128)")
TWIN_KERNEL(bury, "omp parallel for")
int main() {
    const int n = 8192;
    std::vector<std::vector<int>> to(n);
    for (int i = 0; i < n; i++) {
        int links = 1 + (int)(6 * unit(mix2(i, 1)) * unit(mix2(i, 5)) * 3);
        for (int k = 0; k < links; k++) {
            u32 r = mix2(i * 64 + k, 2);
            int j = r & 1 ? (i + 1 + (int)(r / 2 % 300)) % n : (int)(r / 2 % n);
            if (i == j) continue;
            to[i].push_back(j);
            to[j].push_back(i);
        }
    }
    Buf<int> row(n + 1), degree(n), state(n), core(n), left(1);
    std::vector<int> all;
    for (int i = 0; i < n; i++) {
        row[i] = all.size();
        degree[i] = to[i].size();
        all.insert(all.end(), to[i].begin(), to[i].end());
    }
    row[n] = all.size();
    Buf<int> col(all.size());
    col.h = all;
    Data d = {row.up(), col.up(), degree.up(), state.up(), core.up(), 1, left.up()};
    for (int k = 2; k <= 6; k++) {
        d.k = k;
        for (int round = 0; round < 5; round++) {
            RUN(mark, n, d);
            RUN(peel, n, d);
            RUN(bury, n, d);
        }
    }
    core.down(); left.down();
    printf("kcore %d %.0f\n", left[0], total(core));
}
