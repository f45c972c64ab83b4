// games: a life of ages: cells are born, grow old, fall ill in a crowd and leave ground that must rest
#include "../twins/twin.h"
struct Data { const u8 *now; u8 *after; int w, h, old; };
HD int near_alive(const Data &d, int y, int x) { // 1 to 100 is alive, above it resting
    int count = 0;
    for (int b = -1; b <= 1; b++)
        for (int a = -1; a <= 1; a++) {
            if (a == 0 && b == 0) continue;
            int yy = y + b, xx = x + a;
            if (yy < 0) yy += d.h;
            if (yy >= d.h) yy -= d.h;
            if (xx < 0) xx += d.w;
            if (xx >= d.w) xx -= d.w;
            u8 c = d.now[yy * d.w + xx];
            count += c > 0 && c <= 100;
        }
    return count;
}
HD void lifeages_body(int y, int x, const Data &d) {
    int at = y * d.w + x, age = d.now[at], around = near_alive(d, y, x);
    if (age > 100) age = age == 101 ? 0 : age - 1;
    else if (age == 0) age = around == 3;
    else if (around < 2 || around > 3) age = age > 5 ? 103 : 0;
    else if (age >= d.old) age = 110;
    else age++;
    d.after[at] = age;
}
TWIN_KERNEL2(lifeages, "omp parallel for collapse(2)")
int main() {
    const int w = 160, h = 96;
    Buf<u8> a(w * h), b(w * h);
    for (int k = 0; k < w * h; k++) a[k] = mix2(k, 1) % 100 < 35 ? 1 + mix2(k, 2) % 4 : 0;
    a.up(); b.up();
    for (int turn = 0; turn < 8; turn++) {
        Data d = {turn % 2 ? b.d : a.d, turn % 2 ? a.d : b.d, w, h, 12};
        RUN2(lifeages, h, w, d);
    }
    a.down();
    int alive = 0, resting = 0;
    for (int k = 0; k < w * h; k++) { alive += a[k] > 0 && a[k] <= 100; resting += a[k] > 100; }
    printf("lifeages %d %d %.0f\n", alive, resting, total(a));
}
