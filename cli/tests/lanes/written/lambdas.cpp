/* Loops in templates that are handed what an iteration does. */
#include "marks.h"

#include <functional>
#include <vector>

template <class F> static void each(long n, F f) {
#pragma omp parallel for
    for (long i = 0; i < n; ++i) f(i);
}

template <class F> static void each_when_free(size_t n, F &&f) {
#pragma omp parallel for schedule(dynamic, 4)
    for (size_t i = 0; i < n; ++i) f(i);
}

int main(int c, char **) {
    if (c > 1) {
        LAUNCH(77, mix(i));
        LAUNCH(130, mix(i * 3));
        LAUNCH(50, mix(i * 9));
        LAUNCH(44, mix(i * 5));
        return 0;
    }
    std::vector<int> all(200);
    each(77 * c, [&](long i) {
        TURNS(mix(i));
        all[i] = i;
    });
    each(130 * c, [&all](long i) {
        for (u k = 0; k < mix(i * 3); k++) {
            MARK;
            all[i] += k;
        }
    });
    each_when_free(50 * c, [&](size_t i) {
        TURNS(mix(i * 9));
        all.at(i)++;
    });
    std::function<void(long)> hidden = [&](long i) {
        TURNS(mix(i * 5));
        all[i] += 3;
    };
    each(44 * c, hidden);
    return all[3] == 77;
}
