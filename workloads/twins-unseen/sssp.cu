// graphs: shortest paths by rounds over all edges, each relaxed by an atomic minimum
#include "../twins/twin.h"
struct Edge { int u, v, w; };
struct Data { const Edge *edges; const int *now; int *next; int *old; };
HD void relax_body(int e, const Data &d) {
    Edge x = d.edges[e];
    int du = d.now[x.u];
    if (du == 1 << 29) return;
    int there = du + x.w;
    if (there < d.now[x.v]) atomic_min(&d.next[x.v], there);
}
HD void settle_body(int i, const Data &d) { d.old[i] = d.next[i]; }
TWIN_KERNEL(relax, "omp parallel for")
TWIN_KERNEL(settle, "omp parallel for")
int main() {
    const int n = 8192, m = 32768, rounds = 10;
    Buf<Edge> edges(m);
    Buf<int> now(n, 1 << 29), next(n, 1 << 29);
    for (int e = 0; e < m; e++) {
        int u = e / 4;
        u32 r = mix2(e, 1);
        int v = r % 8 ? (u + 1 + (int)(r / 8 % 60)) % n : (int)(r / 8 % n);
        edges[e] = Edge{u, v, 1 + (int)(mix2(e, 2) % 200)};
    }
    for (int k = 0; k < 512; k++) now[k * 16] = next[k * 16] = 0;
    Data d = {edges.up(), now.up(), next.up(), 0};
    d.old = now.d;
    for (int k = 0; k < rounds; k++) {
        RUN(relax, m, d);
        RUN(settle, n, d);
    }
    now.down();
    int reached = 0;
    u32 sum = 0;
    for (int i = 0; i < n; i++) if (now[i] < 1 << 29) { reached++; sum += now[i]; }
    printf("sssp %d %u\n", reached, sum);
}
