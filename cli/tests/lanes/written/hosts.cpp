/* Threads of the program's own have teams of their own, side by side, and hold more than these. */
#include "marks.h"

#include <thread>

static void work(int which, int c) {
#pragma omp parallel for num_threads(3)
    for (int i = 0; i < 60 * c; i++) {
        TURNS(mix(i + 60 * which));
        out[which * 100 + i] = i;
    }
    for (int i = 0; i < 4000 * c; i++) out[which * 5000 + 1000 + i] += i;
}

int main(int c, char **) {
    if (c > 1) {
        LAUNCH(60, mix(i));
        LAUNCH(60, mix(i + 60));
        return 0;
    }
    std::thread one(work, 0, c), other(work, 1, c);
    one.join();
    other.join();
    return out[3] == 77;
}
