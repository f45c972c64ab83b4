// compilers: registers by linear scan: intervals in order of their starts, ended ones free theirs, the longest is spilled
#include "../twins/twin.h"
struct Interval { short start, end; int weight; };
struct Data { const Interval *intervals; const int *first; int registers; u8 *assigned; int *spilled; };
HD int linscan_body(int f, const Data &d) { // the spilled intervals of function f
    const Interval *list = d.intervals + d.first[f];
    u8 *assigned = d.assigned + d.first[f];
    int count = d.first[f + 1] - d.first[f], active[8], n = 0, spills = 0, weight = 0;
    u32 free_ = (1u << d.registers) - 1;
    for (int k = 0; k < count; k++) {
        Interval now = list[k];
        int gone = 0;
        while (gone < n && list[active[gone]].end <= now.start) { free_ |= 1u << assigned[active[gone]]; gone++; }
        if (gone) {
            for (int a = gone; a < n; a++) active[a - gone] = active[a];
            n -= gone;
        }
        int use = -1;
        if (free_) {
            use = 0;
            while (!(free_ >> use & 1)) use++;
        } else {
            int last = active[n - 1];
            spills++;
            if (list[last].end <= now.end) { weight += now.weight; assigned[k] = 255; continue; }
            use = assigned[last];
            assigned[last] = 255;
            weight += list[last].weight;
            n--;
        }
        free_ &= ~(1u << use);
        assigned[k] = use;
        int place = n++; // by ends
        while (place > 0 && list[active[place - 1]].end > now.end) { active[place] = active[place - 1]; place--; }
        active[place] = k;
    }
    d.spilled[f] = weight;
    return spills;
}
TWIN_MAX(linscan, "omp parallel for reduction(max : s)")
int main() {
    const int n = 4096;
    Buf<int> first(n + 1), spilled(n), most(1);
    std::vector<Interval> all;
    for (int f = 0; f < n; f++) {
        first[f] = all.size();
        int count = 4 + mix2(f, 1) % 40, at = 0;
        for (int k = 0; k < count; k++) {
            u32 r = mix2(f * 64 + k, 2);
            at += r % 3;
            int length = r / 4 % 6 ? 1 + r / 32 % 10 : 10 + r / 32 % 60;
            all.push_back(Interval{(short)at, (short)(at + length), 1 + (int)(r / 4096 % 20)});
        }
    }
    first[n] = all.size();
    Buf<Interval> intervals(all.size());
    Buf<u8> assigned(all.size());
    intervals.h = all;
    Data d = {intervals.up(), first.up(), 6, assigned.up(), spilled.up()};
    most.up();
    RUN_INTO(linscan, n, d, most);
    assigned.down(); spilled.down();
    printf("linscan %d %.0f %.0f\n", most[0], total(spilled), total(assigned));
}
