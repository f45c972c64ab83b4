// A small body with branches, which compilers unroll: 4,099 iterations, so that some are left over.
#include <stdio.h>
enum { N = 4099 };
typedef unsigned u;
static u key[N], out[N];
#ifndef SCHEDULE
#define SCHEDULE
#endif
#ifndef UNROLL
#define UNROLL
#endif
__attribute__((noinline)) static void run(int n) {
#pragma omp parallel for SCHEDULE
    UNROLL
    for (int i = 0; i < n; i++) {
        u v = key[i];
        if (v & 1) __asm__ volatile("nopl 0x12345678(%rax,%rax)");
        if (v & 2) __asm__ volatile("nopl 0x12345678(%rax,%rax)");
        out[i] = v * 3 + 1;
    }
}
int main(int c, char **v) {
    (void)v;
    for (u i = 0; i < N; i++) key[i] = (i * 2654435761u) >> 28;
    run(N - 1 + c);
    printf("%u\n", out[27]);
}
