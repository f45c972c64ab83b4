// graphs: triangles by intersecting sorted rows of higher-numbered neighbours
#include "../twins/twin.h"
#include <algorithm>
struct Data { const int *row, *col; };
HD int triangles_body(int u, const Data &d) {
    int begin = d.row[u], end = d.row[u + 1], count = 0;
    if (end - begin < 2) return 0;
    for (int e = begin; e < end - 1; e++) {
        int v = d.col[e], a = e + 1, b = d.row[v], stop = d.row[v + 1];
        while (a < end && b < stop) {
            int x = d.col[a], y = d.col[b];
            if (x == y) { count++; a++; b++; }
            else if (x < y) a++;
            else b++;
        }
    }
    return count;
}
TWIN_SUM(triangles, int, "omp parallel for schedule(dynamic, 64) reduction(+ : s)")
int main() {
    const int n = 8192;
    std::vector<std::vector<int>> to(n);
    for (int i = 0; i < n; i++) {
        u32 r = mix2(i, 1);
        int degree = r % 64 == 0 ? 30 + r / 64 % 60 : 2 + r % 9;
        for (int k = 0; k < degree; k++) {
            u32 q = mix2(i * 128 + k, 2);
            int j = q & 3 ? (i + 1 + (int)(q / 4 % 40)) % n : (int)(q / 4 % n);
            if (j != i) to[std::min(i, j)].push_back(std::max(i, j));
        }
    }
    Buf<int> row(n + 1), sum(1);
    std::vector<int> all;
    for (int i = 0; i < n; i++) {
        std::sort(to[i].begin(), to[i].end());
        to[i].erase(std::unique(to[i].begin(), to[i].end()), to[i].end());
        row[i] = all.size();
        all.insert(all.end(), to[i].begin(), to[i].end());
    }
    row[n] = all.size();
    Buf<int> col(all.size());
    col.h = all;
    Data d = {row.up(), col.up()};
    sum.up();
    RUN_INTO(triangles, n, d, sum);
    printf("triangles %d\n", sum[0]);
}
