// graphs: PageRank: each vertex shares its rank out, then pulls what its in-neighbours share
#include "../twins/twin.h"
struct Data { const int *row, *from, *outdegree; float *rank, *share; float damping, base; int *moved; };
HD void share_body(int i, const Data &d) {
    int out = d.outdegree[i];
    d.share[i] = out ? d.rank[i] / out : 0;
}
HD void pull_body(int i, const Data &d) {
    float sum = 0;
    for (int e = d.row[i]; e < d.row[i + 1]; e++) sum += d.share[d.from[e]];
    float was = d.rank[i], is = d.base + d.damping * sum;
    d.rank[i] = is;
    d.moved[i] += fabsf(is - was) > 0.05f * was;
}
TWIN_KERNEL(share, "omp parallel for")
TWIN_KERNEL(pull, "omp parallel for schedule(dynamic, 256)")
int main() {
    const int n = 16384, rounds = 6;
    Buf<int> row(n + 1), out(n), moved(n);
    Buf<float> rank(n, 1.0f), share_(n);
    std::vector<int> from;
    for (int i = 0; i < n; i++) {
        row[i] = from.size();
        float u = (float)i / n; // in the order of their degrees
        int degree = (int)(2 / (0.02f + u)); // a few vertices have many links
        for (int k = 0; k < degree; k++) {
            u32 r = mix2(i * 128 + k, 2);
            int v = r % 3 ? (int)(r / 3 % n) : (int)(r / 3 % 700);
            from.push_back(v);
            out[v]++;
        }
    }
    row[n] = from.size();
    Buf<int> col(from.size());
    col.h = from;
    Data d = {row.up(), col.up(), out.up(), rank.up(), share_.up(), 0.85f, 0.15f, moved.up()};
    for (int k = 0; k < rounds; k++) {
        RUN(share, n, d);
        RUN(pull, n, d);
    }
    rank.down(); moved.down();
    printf("pagerank %.0f %.0f\n", total(rank) / 10, total(moved) / 100);
}
