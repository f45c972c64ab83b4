/* Two hundred pieces of work, of which number i makes 4 * i turns of a loop, dealt out in many ways. */
#ifdef __cplusplus
#include <future>
#include <numeric>
#include <stdexcept>
#include <vector>
#endif
#ifdef PAR_FOR_EACH
#include <algorithm>
#include <execution>
#endif
#ifdef NESTED
#include <omp.h>
#endif
#include <pthread.h>
#include <stdio.h>

static int out[200];

#ifdef __cplusplus
extern "C"
#endif
__attribute__((noinline)) int turns(int n) {
    int x = 1;
    for (volatile int i = 0; i < 4 * n; i++) x = x * 5 + i;
    return x;
}

#if defined(POOL)
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int next;
static void *worker(void *p) {
    for (;;) {
        pthread_mutex_lock(&mutex);
        int i = next < 200 ? next++ : -1;
        pthread_mutex_unlock(&mutex);
        if (i < 0) return p;
        out[i] = turns(i);
    }
}
#elif defined(RECURSES)
__attribute__((noipa)) static void halves(int first, int end) {
    if (end - first == 1) {
        out[first] = turns(first);
    } else {
        halves(first, (first + end) / 2);
        halves((first + end) / 2, end);
    }
}
#elif defined(THROWS)
__attribute__((noipa)) static int risky(int i) {
    int result = turns(i);
    if (i % 5 == 0) throw std::runtime_error("a fifth");
    return result;
}
#endif

int main(void) {
    unsigned sum = 0;
#if defined(POOL)
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, worker, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
#elif defined(ASYNC)
    std::vector<std::future<int>> all;
    for (int i = 0; i < 200; i++) all.push_back(std::async(std::launch::async, turns, i));
    for (int i = 0; i < 200; i++) out[i] = all[i].get();
#elif defined(PAR_FOR_EACH)
    std::vector<int> all(200);
    std::iota(all.begin(), all.end(), 0);
    std::for_each(std::execution::par, all.begin(), all.end(), [](int i) { out[i] = turns(i); });
#elif defined(RECURSES)
    halves(0, 200);
#elif defined(SEQUENTIAL)
    for (int i = 0; i < 200; i++) out[i] = turns(i);
#elif defined(SKIPS)
    /* Every third turn ends early. */
    for (int i = 0; i < 200; i++) {
        if (i % 3 == 0) continue;
        out[i] = turns(i);
    }
#elif defined(BREAKS)
    for (int i = 0; i < 200; i++) {
        out[i] = turns(i);
        if (i == 49) break;
    }
#elif defined(THROWS)
    for (int i = 0; i < 200; i++) {
        try {
            out[i] = risky(i);
        } catch (const std::exception &) {
            out[i] = -i;
        }
    }
#elif defined(NESTED)
    /* A team of two, each of which forks another for its half of the work. */
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        int half = omp_get_thread_num();
#pragma omp parallel for num_threads(2) schedule(NESTED)
        for (int i = 100 * half; i < 100 * half + 100; i++) out[i] = turns(i);
    }
#elif defined(COLLAPSE)
#pragma omp parallel for collapse(2) schedule(COLLAPSE)
    for (int y = 0; y < 20; y++)
        for (int x = 0; x < 10; x++) out[10 * y + x] = turns(10 * y + x);
#elif defined(DOWN)
#pragma omp parallel for schedule(DOWN)
    for (int i = 199; i >= 0; i--) out[199 - i] = turns(199 - i);
#elif defined(UNSIGNED)
#pragma omp parallel for schedule(UNSIGNED)
    for (unsigned long i = 7; i < 607; i += 3) out[(i - 7) / 3] = turns((int)(i - 7) / 3);
#elif defined(TEAMS)
/* The machine runs the teams of a GPU: one after another, or with a thread each. */
#pragma omp target teams distribute parallel for num_teams(TEAMS) thread_limit(2) map(from : out)
    for (int i = 0; i < 200; i++) out[i] = turns(i);
#elif defined(TEAMS_BY_CHUNKS)
#pragma omp target teams distribute parallel for num_teams(TEAMS_BY_CHUNKS) thread_limit(2) dist_schedule(static, 30) map(from : out)
    for (int i = 0; i < 200; i++) out[i] = turns(i);
#elif defined(TEAMS_ALONE)
#pragma omp target teams distribute num_teams(TEAMS_ALONE) map(from : out)
    for (int i = 0; i < 200; i++) out[i] = turns(i);
#elif defined(TEAMS_OF_HOST)
#pragma omp teams distribute num_teams(TEAMS_OF_HOST)
    for (int i = 0; i < 200; i++) out[i] = turns(i);
#elif defined(TARGET_ALONE)
#pragma omp target map(from : out)
    for (int i = 0; i < 200; i++) out[i] = turns(i);
#elif defined(TARGET_PARALLEL)
#pragma omp target parallel for num_threads(4) map(from : out)
    for (int i = 0; i < 200; i++) out[i] = turns(i);
#elif defined(TASKS)
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 200; i++) {
#pragma omp task firstprivate(i)
        out[i] = turns(i);
    }
#elif defined(AT_BARRIER)
/* All threads run the tasks of one at a barrier. */
#pragma omp parallel
    {
#pragma omp master
        for (int i = 0; i < 200; i++) {
#pragma omp task firstprivate(i)
            out[i] = turns(i);
        }
#pragma omp barrier
    }
#elif defined(TASKLOOP)
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(TASKLOOP)
    for (int i = 0; i < 200; i++) out[i] = turns(i);
#elif defined(TASKLOOP_DOWN)
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(TASKLOOP_DOWN)
    for (int i = 199; i >= 0; i--) out[199 - i] = turns(199 - i);
#elif defined(TASKLOOP_STEPS)
#pragma omp parallel
#pragma omp single
    for (int step = 0; step < 3; step++) {
#pragma omp taskloop grainsize(TASKLOOP_STEPS)
        for (int i = 0; i < 200; i++) out[i] += turns(i);
    }
#elif defined(TASKLOOP_NEST)
#pragma omp parallel
#pragma omp single
#pragma omp taskloop collapse(2)
    for (int i = 0; i < 10; i++)
        for (int k = 0; k < 20; k++) out[20 * i + k] += 1;
#elif defined(TASKLOOP_BEHIND)
/* Threads run pieces behind the region, while they wait for its end. */
#pragma omp parallel
#pragma omp master
#pragma omp taskloop nogroup grainsize(TASKLOOP_BEHIND)
    for (int i = 0; i < 200; i++) out[i] = turns(i);
#else
#pragma omp parallel for schedule(SCHEDULE)
    for (int i = 0; i < 200; i++) out[i] = turns(i);
#endif
    for (int i = 0; i < 200; i++) sum = sum * 3 + out[i];
    printf("%u\n", sum);
    return 0;
}
