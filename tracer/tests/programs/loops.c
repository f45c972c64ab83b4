/* Worksharing loops of a team of two, of all schedules and types; each is run by `loop_<number>`. With an argument: those alone that are
   dealt out without asking. */
#include <omp.h>
#include <stdio.h>

#include "without_end.h"

void kmp_set_blocktime(int) __attribute__((weak));
static int runs[1 << 12];
static unsigned long long sum;

#define LOOP(number, clauses, type, first, test, step)                                                                 \
    __attribute__((noinline)) static void loop_##number(void) {                                                        \
        _Pragma("omp parallel num_threads(2)")                                                                         \
        {                                                                                                              \
            DO_PRAGMA(omp for clauses)                                                                                 \
            for (type i = first; test; step) __atomic_fetch_add(&runs[(unsigned)(i + 2048) & 4095], number, 5);        \
        }                                                                                                              \
    }
#define DO_PRAGMA(x) _Pragma(#x)

LOOP(1, schedule(dynamic, 5), int, 0, i < 23, i++)
LOOP(2, schedule(guided), long, -20, i < 20, i += 3)
LOOP(3, schedule(runtime), int, 30, i > 0, i -= 2)
LOOP(4, schedule(static, 4) ordered, int, 0, i < 21, i++)
LOOP(5, schedule(dynamic, 2), unsigned long long, 7ull, i < 40ull, i += 4)
LOOP(6, schedule(monotonic : dynamic), unsigned, 100u, i < 120u, i += 5)
LOOP(7, schedule(static), int, 0, i < 20, i++)
LOOP(8, schedule(static, 3), int, 0, i < 20, i++)

int main(int argc, char **argv) {
    (void)argv;
    if (kmp_set_blocktime) kmp_set_blocktime(0);
    loop_7(), loop_8();
    if (argc > 1) end_without_libraries();
    loop_1(), loop_2(), loop_3(), loop_4(), loop_5(), loop_6();
#pragma omp parallel for schedule(dynamic, 3) collapse(2) num_threads(2)
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++) __atomic_fetch_add(&runs[1000 + 4 * i + j], 9, 5);
    for (int i = 0; i < 1 << 12; i++) sum = sum * 31 + runs[i];
    printf("%llu\n", sum);
    end_without_libraries();
}
