// graphs: biased random walks (back, near or far), the next vertex by rejection; rows are searched for "is a neighbour"
#include "../twins/twin.h"
#include <algorithm>
struct Data { const int *row, *col; int n, length; float back, far_; int *end, *tries; };
HD bool adjacent(const Data &d, int u, int v) {
    int lo = d.row[u], hi = d.row[u + 1];
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (d.col[mid] == v) return true;
        if (d.col[mid] < v) lo = mid + 1;
        else hi = mid;
    }
    return false;
}
HD void walks_body(int i, const Data &d) {
    u32 seed = mix2(i, 77) | 1;
    int at = i % d.n, before = -1, tries = 0;
    float most = d.back > 1 ? d.back : 1;
    if (d.far_ > most) most = d.far_;
    for (int step = 0; step < d.length; step++) {
        int first = d.row[at], degree = d.row[at + 1] - first;
        if (degree == 0) break; // a dead end
        int to;
        for (;;) {
            to = d.col[first + next(seed) % degree];
            tries++;
            if (before < 0) break;
            float weight = to == before ? d.back : adjacent(d, before, to) ? 1.0f : d.far_;
            if (nextf(seed) * most < weight) break;
        }
        before = at;
        at = to;
    }
    d.end[i] = at; d.tries[i] = tries;
}
TWIN_KERNEL(walks, "omp parallel for")
int main() {
    const int n = 4096;
    Buf<int> row(n + 1), end(n), tries(n);
    std::vector<int> all;
    for (int i = 0; i < n; i++) {
        row[i] = all.size();
        u32 r = mix2(i, 1);
        int degree = r % 50 == 0 ? 0 : 1 + (r / 50 % 10 ? r / 500 % 8 : r / 500 % 40);
        std::vector<int> mine;
        for (int k = 0; k < degree; k++) { u32 q = mix2(i * 64 + k, 2); mine.push_back(q & 3 ? (i + (int)(q / 4 % 50)) % n : (int)(q / 4 % n)); }
        std::sort(mine.begin(), mine.end());
        all.insert(all.end(), mine.begin(), mine.end());
    }
    row[n] = all.size();
    Buf<int> col(all.size());
    col.h = all;
    Data d = {row.up(), col.up(), n, 24, 0.25f, 2.0f, end.up(), tries.up()};
    RUN(walks, n, d);
    end.down(); tries.down();
    printf("walks %.0f %.0f\n", total(end), total(tries));
}
