/* Loops that OpenMP shares out in ways that are drawn seldom, one for each definition. Iteration i makes mix(i) turns of
 * a marked loop: see `cli/tests/transforms/marking.rs`, which has the lanes of each. */
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

typedef unsigned u;
#define MARK __asm__ volatile("nopl 0x12345678(%rax,%rax)")

static u mix(u i) { return (i * 2654435761u) >> 28; }
static int out[4096];

static void turns(u i) {
    for (u j = 0; j < mix(i); j++) MARK;
    __atomic_fetch_add(&out[i & 4095], i, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static void orphan(int n) {
#pragma omp for nowait
    for (int i = 0; i < n; i++) turns(i);
}

static inline void inlined_orphan(int n) {
#pragma omp for schedule(dynamic, 2)
    for (int i = 0; i < n; i++) turns(i);
}

__attribute__((noinline)) static void inside(int i, int c) {
#pragma omp parallel for if (c > 5)
    for (int k = 0; k < 3; k++) {
        MARK;
        __atomic_fetch_add(&out[k], i, __ATOMIC_RELAXED);
    }
}

int main(int c, char **) {
    const int n = 100 * c;
#if defined(ORPHAN)
#pragma omp parallel
    for (int s = 0; s < 3; s++) orphan(n);
#elif defined(INLINED)
#pragma omp parallel
    for (int s = 0; s < 3; s++) inlined_orphan(n);
#elif defined(CANCEL)
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        turns(i);
#pragma omp cancel for if (i < 0)
        out[i] ^= 3;
    }
#elif defined(THROWS)
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        try {
            if (i % 3 == 0) throw std::runtime_error("a third");
            turns(i);
        } catch (...) {
            turns(i);
        }
    }
#elif defined(SIMD)
#pragma omp parallel for simd
    for (int i = 0; i < n; i++) turns(i);
#elif defined(LOOP)
#pragma omp parallel loop
    for (int i = 0; i < n; i++) turns(i);
#elif defined(TEAMS_LOOP)
#pragma omp target teams loop
    for (int i = 0; i < n; i++) turns(i);
#elif defined(CYCLIC_TEAMS)
#pragma omp target teams distribute parallel for simd collapse(2) schedule(static, 1)
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < 10; j++) turns(i * 10 + j);
#elif defined(DISTRIBUTE)
#pragma omp teams distribute num_teams(3)
    for (int b = 0; b < 10; b++) {
#pragma omp parallel for
        for (int i = 0; i < 10; i++) turns(b * 10 + i);
    }
#elif defined(DOACROSS)
#pragma omp parallel for ordered(1) schedule(static, 1)
    for (int i = 0; i < n; i++) {
#pragma omp ordered depend(sink : i - 1)
        turns(i);
#pragma omp ordered depend(source)
    }
#elif defined(LAST)
    int last = 0, linear = 0;
#pragma omp parallel for lastprivate(last) linear(linear : 2) schedule(guided)
    for (int i = 0; i < n; i++) {
        turns(i);
        last = i;
        linear += 2;
    }
    printf("%d %d\n", last, linear);
#elif defined(RANGE)
    std::vector<int> all(n);
    for (int i = 0; i < n; i++) all[i] = i;
#pragma omp parallel for
    for (int &one : all) turns(one++);
#elif defined(INSIDE)
    /* A region in the body, of one thread. */
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        turns(i);
        inside(i, c);
    }
#elif defined(ALONE)
#pragma omp parallel for if (c > 5)
    for (int i = 0; i < n; i++) turns(i);
#pragma omp parallel for
    for (int i = 0; i < n; i++) turns(i);
#pragma omp parallel for if (c > 5)
    for (int i = 0; i < n; i++) turns(i);
#elif defined(SECTIONS)
#pragma omp parallel
    {
#pragma omp sections
        {
#pragma omp section
            out[1] = 3;
#pragma omp section
            out[2] = 4;
        }
#pragma omp for
        for (int i = 0; i < n; i++) turns(i);
    }
#elif defined(LAMBDA)
    auto shares = [&](int lower, int upper) {
#pragma omp parallel for schedule(static, 3)
        for (int i = lower; i < upper; i++) turns(i);
    };
    shares(0, n);
    shares(0, n);
#elif defined(TRIANGLE)
    /* clang makes a rectangle of it. */
#pragma omp parallel for collapse(2)
    for (int i = 0; i < 20; i++)
        for (int j = i; j < 20; j++) turns(i * 20 + j);
#elif defined(SCAN)
    int sum = 0;
#pragma omp parallel for reduction(inscan, + : sum)
    for (int i = 0; i < n; i++) {
        sum += 1;
        turns(i);
#pragma omp scan inclusive(sum)
        out[i] += sum;
    }
#elif defined(TASKLOOP)
#pragma omp parallel
#pragma omp single
#pragma omp taskloop collapse(2) num_tasks(5)
    for (int i = 0; i < 10 * c; i++)
        for (int j = 0; j < 10; j++) turns(i * 10 + j);
#elif defined(IN_TASKS)
    /* Each region has one thread, and several may run at a time. */
#pragma omp parallel
#pragma omp single
    for (int k = 0; k < 2; k++)
#pragma omp task
    {
#pragma omp parallel for
        for (int i = 0; i < n; i++) turns(i);
    }
#elif defined(NOWAIT)
#pragma omp parallel
    {
#pragma omp for nowait schedule(static)
        for (int i = 0; i < n; i++) turns(i);
#pragma omp for nowait schedule(static)
        for (int i = 0; i < 2; i++) turns(i);
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 3; i++) turns(i);
    }
#elif defined(STEPS)
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < n; i++) turns(i);
        for (int k = 0; k < 2; k++) {
#pragma omp for schedule(runtime) nowait
            for (int i = 0; i < n; i++) turns(i);
        }
    }
#endif
    u hash = 0;
    for (int i = 0; i < 4096; i++) hash = hash * 3 + out[i];
    printf("%u\n", hash);
}
