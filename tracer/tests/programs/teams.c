/* Teams: of a target region that no device takes, of a teams construct of the host, and a target region without teams;
   each in a function of its own. */
#include <stdio.h>

static int runs[64], sum;

__attribute__((noinline)) static void offload(void) {
#pragma omp target teams distribute parallel for num_teams(2) thread_limit(2) map(tofrom : runs)
    for (int i = 0; i < 60; i++) runs[i] += i;
}

__attribute__((noinline)) static void host(void) {
#pragma omp teams distribute num_teams(2) thread_limit(2)
    for (int i = 0; i < 60; i++) runs[i] += i;
}

__attribute__((noinline)) static void alone(void) {
#pragma omp target map(tofrom : sum)
    for (int i = 0; i < 60; i++) sum += i;
}

int main(void) {
    offload(), host(), alone();
    for (int i = 0; i < 60; i++) sum = sum * 3 + runs[i];
    printf("%d\n", sum);
    return 0;
}
