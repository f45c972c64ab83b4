/* Loops over iterators of the standard library. */
#include "marks.h"

#include <deque>
#include <vector>

struct item {
    int key;
    double weights[3];
};

__attribute__((noinline)) static void over(std::vector<item> &all) {
#pragma omp parallel for
    for (auto it = all.begin(); it < all.end(); ++it) {
        TURNS(mix(it->key));
        it->weights[0] = it->key;
    }
}

__attribute__((noinline)) static void over(std::deque<int> &all) {
#pragma omp parallel for schedule(guided)
    for (auto it = all.begin(); it < all.end(); it += 2) {
        TURNS(mix(*it * 5));
        *it += 1;
    }
}

__attribute__((noinline)) static void back(std::vector<item> &all) {
#pragma omp parallel for schedule(static, 3)
    for (auto it = all.rbegin(); it != all.rend(); ++it) {
        TURNS(mix(it->key + 9));
        it->weights[1] = it->key;
    }
}

int main(int c, char **) {
    if (c > 1) {
        LAUNCH(83, mix(i));
        LAUNCH(30, mix(2 * i * 5));
        LAUNCH(83, mix(82 - i + 9));
        return 0;
    }
    std::vector<item> all(83 * c);
    std::deque<int> numbers;
    for (int i = 0; i < 83 * c; i++) all[i].key = i;
    for (int i = 0; i < 60 * c; i++) numbers.push_back(i);
    over(all);
    over(numbers);
    back(all);
    return all[3].key == 77;
}
