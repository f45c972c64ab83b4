/* OpenMP tasks of a team of two, each kind by a function of its own: twenty with a number each, ten with none, ten that
   are run at once, ten whose data is copied by a function, pieces of three taskloops. Prints how often bodies ran. */
#include <omp.h>
#include <stdio.h>

#include "without_end.h"

void kmp_set_blocktime(int) __attribute__((weak));
static int runs[8][64];
static int none, many;
struct large { char first[60]; int number; };

static void count(int kind, int number) { __atomic_fetch_add(&runs[kind][number & 63], 1, 5); }

__attribute__((noinline)) static void numbered(void) {
    for (int i = 0; i < 20; i++) {
#pragma omp task firstprivate(i)
        count(0, i);
    }
#pragma omp taskwait
}

__attribute__((noinline)) static void without_data(void) {
    for (int i = 0; i < 10; i++) {
#pragma omp task
        __atomic_fetch_add(&none, 1, 5);
    }
#pragma omp taskwait
}

__attribute__((noinline)) static void at_once(void) {
    for (char i = 0; i < 10; i++) {
#pragma omp task firstprivate(i) if (0)
        count(1, i);
    }
}

__attribute__((noinline)) static void with_much(void) {
    for (int i = 0; i < 10; i++) {
        struct large large = {"", i};
#pragma omp task firstprivate(large)
        __atomic_fetch_add(&many, large.number, 5);
    }
#pragma omp taskwait
}

__attribute__((noinline)) static void loop_1(void) {
#pragma omp taskloop grainsize(3)
    for (int i = 0; i < 25; i++) count(2, i);
}

__attribute__((noinline)) static void loop_2(void) {
#pragma omp taskloop num_tasks(4)
    for (int i = 40; i > 0; i -= 2) count(3, i);
}

__attribute__((noinline)) static void loop_3(void) {
#pragma omp taskloop num_tasks(4)
    for (unsigned long long i = 7; i < 40ull; i += 4) count(4, (int)i);
}

int main(void) {
    if (kmp_set_blocktime) kmp_set_blocktime(0);
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        numbered(), without_data(), at_once(), with_much(), loop_1(), loop_2(), loop_3();
    }
    for (int kind = 0; kind < 5; kind++) {
        int all = 0;
        for (int i = 0; i < 64; i++) all += runs[kind][i];
        printf("%d ", all);
    }
    printf("%d %d\n", none, many);
    end_without_libraries();
}
