// Threads in templates of templates: names of functions are hundreds of characters long, as in programs of today.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace geometry::numerical_integration::detail {

template <class Shape, class Accumulator, class Allocator = std::allocator<std::pair<const std::string, Accumulator>>>
struct AdaptiveQuadratureEvaluator {
    std::map<std::string, Accumulator, std::less<std::string>, Allocator> found;

    template <class Function>
    __attribute__((noinline)) Accumulator evaluate_recursively_until_converged(const Function &function, Shape shape, int depth) {
        Accumulator sum{};
        for (int i = 0; i < depth; i++) {
            if ((shape + i) % 3 == 0)
                sum += function(shape + i);
            else
                sum -= function(i) / 2;
        }
        return sum;
    }
};

} // namespace geometry::numerical_integration::detail

int main(int argc, char **argv) {
    using Evaluator = geometry::numerical_integration::detail::AdaptiveQuadratureEvaluator<unsigned, long>;
    int turns = argc > 1 ? atoi(argv[1]) : 40;
    unsigned lanes = argc > 2 ? atoi(argv[2]) : 8;
    std::vector<long> results(lanes);
    std::vector<std::thread> threads;
    for (unsigned id = 0; id < lanes; id++)
        threads.emplace_back([&results, turns, id] {
            Evaluator evaluator;
            auto weigh = [id](unsigned at) { return static_cast<long>(at * (id + 1)) % 97; };
            for (int turn = 0; turn < turns; turn++)
                results[id] += evaluator.evaluate_recursively_until_converged(weigh, id, turn % (static_cast<int>(id) + 2));
        });
    for (auto &thread : threads)
        thread.join();
    std::printf("%ld\n", std::accumulate(results.begin(), results.end(), 0L));
}
