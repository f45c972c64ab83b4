// finance: a down-and-out call with a second barrier that pays a rebate; a path ends at either, also between two dates
#include "../twins/twin.h"
struct Data { float spot, strike, low, high, rebate, drift, vol, dt; int steps, paths; float *pay; int *ended; };
HD void barrier_body(int i, const Data &d) {
    u32 seed = mix2(i, 11) | 1;
    float sum = 0, move = d.vol * sqrtf(d.dt), spare = 0;
    bool has_spare = false;
    int ended = 0;
    for (int path = 0; path < d.paths; path++) {
        float x = logf(d.spot), low = logf(d.low), high = logf(d.high), pay = -1;
        for (int t = 0; t < d.steps; t++) {
            float z;
            if (has_spare) { z = spare; has_spare = false; }
            else {
                float radius = sqrtf(-2 * logf(nextf(seed) + 1e-7f)), angle = 6.2831853f * nextf(seed);
                z = radius * cosf(angle);
                spare = radius * sinf(angle);
                has_spare = true;
            }
            float to = x + d.drift * d.dt + move * z;
            if (to <= low) { pay = 0; break; }
            if (to >= high) { pay = d.rebate; break; }
            // The chance that the path was below in between, as of a Brownian bridge.
            float near_ = (x - low) * (to - low) / (move * move);
            if (near_ < 4 && nextf(seed) < expf(-2 * near_)) { pay = 0; break; }
            x = to;
        }
        if (pay < 0) { float s = expf(x) - d.strike; pay = s > 0 ? s : 0; }
        else ended++;
        sum += pay;
    }
    d.pay[i] = sum / d.paths; d.ended[i] = ended;
}
TWIN_KERNEL(barrier, "omp parallel for")
int main() {
    const int n = 4096;
    Buf<float> pay(n);
    Buf<int> ended(n);
    Data d = {100, 95, 85, 130, 10, 0.02f, 0.35f, 1.0f / 52, 40, 8, pay.up(), ended.up()};
    RUN(barrier, n, d);
    pay.down(); ended.down();
    printf("barrier %.1e %.1e\n", total(pay), total(ended));
}
