// An exception leaves two frames and a call_once, and is caught; a thread throws one too.
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>

static std::once_flag flag;

static void thrower(int n) {
    if (n == 0) throw std::runtime_error("deep");
    thrower(n - 1);
}

static void attempt() {
    try {
        std::call_once(flag, [] { thrower(2); });
    } catch (const std::exception &error) {
        std::printf("caught %s\n", error.what());
    }
}

int main() {
    attempt();
    std::thread(attempt).join();
    return 0;
}
