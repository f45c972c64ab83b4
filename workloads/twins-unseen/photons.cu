// physics: photons through layers of tissue: free paths, layer crossings, mirrored rays, scattering and Russian roulette
#include "../twins/twin.h"
struct Layer { float bottom, absorb, scatter, aniso, index; };
struct Data { const Layer *layers; int count; int *fate, *events; float *taken; };
HD bool mirrored(float from, float to, float cosine, u32 &seed) {
    if (from == to) return false;
    float sine = from / to * sqrtf(1 - cosine * cosine);
    if (sine >= 1) return true;
    float other = sqrtf(1 - sine * sine);
    float s = (from * cosine - to * other) / (from * cosine + to * other), p = (from * other - to * cosine) / (from * other + to * cosine);
    return nextf(seed) < 0.5f * (s * s + p * p);
}
HD void photons_body(int i, const Data &d) {
    u32 seed = mix2(i, 5) | 1;
    float z = 0, uz = 1, weight = 1, taken = 0;
    int layer = 0, events = 0, fate = 0; // 1 came back, 2 went through, 3 died
    while (!fate && events < 300) {
        const Layer &l = d.layers[layer];
        float total_ = l.absorb + l.scatter, left = -logf(nextf(seed) + 1e-7f);
        float step = left / total_, top = layer ? d.layers[layer - 1].bottom : 0;
        float wall = uz > 0 ? (l.bottom - z) / uz : uz < 0 ? (top - z) / uz : 1e9f;
        events++;
        if (wall < step) { // reaches the layer's border first
            int there = uz > 0 ? layer + 1 : layer - 1;
            float outside = there < 0 || there == d.count ? 1.0f : d.layers[there].index;
            z = uz > 0 ? l.bottom : top;
            if (mirrored(l.index, outside, fabsf(uz), seed)) uz = -uz;
            else if (there < 0) fate = 1;
            else if (there == d.count) fate = 2;
            else layer = there;
            continue;
        }
        z += step * uz;
        float loss = weight * l.absorb / total_;
        taken += loss;
        weight -= loss;
        float g = l.aniso, c = 2 * nextf(seed) - 1;
        if (g > 0) { float q = (1 - g * g) / (1 + g * c); c = (1 + g * g - q * q) / (2 * g); }
        float turn = cosf(6.2831853f * nextf(seed));
        uz = uz * c + sqrtf(fmaxf(0, 1 - uz * uz)) * sqrtf(fmaxf(0, 1 - c * c)) * turn;
        if (uz > 1) uz = 1;
        if (uz < -1) uz = -1;
        if (weight < 0.02f) {
            if (nextf(seed) > 0.1f) fate = 3;
            else weight *= 10;
        }
    }
    d.fate[i] = fate; d.events[i] = events; d.taken[i] = taken;
}
TWIN_KERNEL(photons, "omp parallel for schedule(dynamic, 32)")
int main() {
    const int n = 8192, m = 3;
    Buf<Layer> l(m);
    l[0] = Layer{0.2f, 0.4f, 9, 0.8f, 1.37f}; l[1] = Layer{0.9f, 1.2f, 6, 0.7f, 1.37f}; l[2] = Layer{1.6f, 2.5f, 3, 0, 1.45f};
    Buf<int> fate(n), events(n);
    Buf<float> taken(n);
    Data d = {l.up(), m, fate.up(), events.up(), taken.up()};
    RUN(photons, n, d);
    fate.down(); events.down(); taken.down();
    int through = 0;
    for (int i = 0; i < n; i++) through += fate[i] == 2;
    printf("photons %d %.1e %.1e\n", through / 100, total(events), total(taken));
}
