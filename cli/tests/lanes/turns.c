/* A loop shared by a team, whose iteration i makes 4 * i turns of an inner one. */
#include <stdio.h>

static int out[200];

__attribute__((noinline)) int turns(int n) {
    int x = 1;
    for (volatile int i = 0; i < 4 * n; i++) x = x * 5 + i;
    return x;
}

int main(void) {
    unsigned sum = 0;
#if defined(COLLAPSE)
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
#else
#pragma omp parallel for schedule(SCHEDULE)
    for (int i = 0; i < 200; i++) out[i] = turns(i);
#endif
    for (int i = 0; i < 200; i++) sum = sum * 3 + out[i];
    printf("%u\n", sum);
    return 0;
}
