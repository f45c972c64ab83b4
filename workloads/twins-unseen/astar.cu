// games: shortest ways by A* on maps of 12 x 12 with walls and mud, the open list a binary heap of a thread's own
#include "../twins/twin.h"
const int S = 12;
struct Data { const u8 *maps; const u8 *from, *to; int *length, *opened; };
HD int guess(int a, int b) {
    int dx = a % S - b % S, dy = a / S - b / S;
    return 2 * ((dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy));
}
HD void push(u32 *heap, int &size, u32 v) {
    int k = size++;
    while (k > 0 && heap[(k - 1) / 2] > v) { heap[k] = heap[(k - 1) / 2]; k = (k - 1) / 2; }
    heap[k] = v;
}
HD u32 pop(u32 *heap, int &size) {
    u32 top = heap[0], v = heap[--size];
    int k = 0;
    for (;;) {
        int child = 2 * k + 1;
        if (child >= size) break;
        if (child + 1 < size && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= v) break;
        heap[k] = heap[child];
        k = child;
    }
    heap[k] = v;
    return top;
}
HD void astar_body(int i, const Data &d) {
    const u8 *map = d.maps + i * S * S;
    int goal = d.to[i], size = 0, opened = 0, answer = -1;
    u32 heap[4 * S * S];
    u8 cost[S * S];
    for (int k = 0; k < S * S; k++) cost[k] = 255;
    cost[d.from[i]] = 0;
    push(heap, size, (u32)guess(d.from[i], goal) << 16 | d.from[i]);
    while (size > 0) {
        u32 v = pop(heap, size);
        int at = v & 255, g = v >> 8 & 255;
        if (g > cost[at]) continue; // an old entry
        opened++;
        if (at == goal) { answer = g; break; }
        for (int k = 0; k < 4; k++) {
            int x = at % S + (k == 0) - (k == 1), y = at / S + (k == 2) - (k == 3);
            if (x < 0 || y < 0 || x >= S || y >= S) continue;
            int to = y * S + x, ground = map[to];
            if (ground == 0) continue;
            int there = g + 1 + ground;
            if (there >= cost[to]) continue;
            cost[to] = there;
            push(heap, size, (u32)(there + guess(to, goal)) << 16 | there << 8 | to);
        }
    }
    d.length[i] = answer; d.opened[i] = opened;
}
TWIN_KERNEL(astar, "omp parallel for schedule(dynamic, 16)")
int main() {
    const int n = 2048;
    Buf<u8> maps(n * S * S), from(n), to(n);
    Buf<int> length(n), opened(n);
    for (int i = 0; i < n; i++) {
        int walls = mix2(i, 1) % 40;
        for (int k = 0; k < S * S; k++) { u32 r = mix2(i * S * S + k, 2); maps[i * S * S + k] = (int)(r % 100) < walls ? 0 : r / 128 % 5 ? 1 : 3; }
        from[i] = mix2(i, 3) % (S * S); to[i] = mix2(i, 4) % (S * S);
        maps[i * S * S + from[i]] = maps[i * S * S + to[i]] = 1;
    }
    Data d = {maps.up(), from.up(), to.up(), length.up(), opened.up()};
    RUN(astar, n, d);
    length.down(); opened.down();
    printf("astar %.0f %.0f\n", total(length), total(opened));
}
