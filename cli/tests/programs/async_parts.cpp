// Parts of a sum, by std::async: every other one has twice the steps, so that a warp of 32 uses 75%. Each thread gives
// up its share of what holds its result (`lock xadd` of -1).
#include <future>
#include <vector>
#include <iostream>
#include <cstdint>
static uint64_t part(unsigned k) {
    uint64_t x = k + 1, sum = 0;
    for (unsigned i = 0; i < 1000 * (1 + k % 2); i++) { x = x * 6364136223846793005u + 1442695040888963407u; sum += x >> 60; }
    return sum;
}
int main() {
    std::vector<std::future<uint64_t>> parts;
    for (unsigned k = 0; k < 32; k++) parts.push_back(std::async(std::launch::async, part, k));
    uint64_t sum = 0;
    for (auto &p : parts) sum += p.get();
    std::cout << sum << "\n";
}
