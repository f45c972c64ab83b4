/* What each program here has: marks, a number of them for each iteration, and how to say what its lanes are. */
#pragma once
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
typedef unsigned u;
#define MARK __asm__ volatile("nopl 0x12345678(%rax,%rax)")
#define TURNS(n) for (u j_ = 0, m_ = (n); j_ < m_; j_++) MARK
static inline u mix(u i) { return (i * 2654435761u) >> 28; }
/* One launch of n lanes, of which lane i has so many marks. */
#define LAUNCH(n, marks)                                                                                              \
    do {                                                                                                              \
        printf("launch");                                                                                             \
        for (long i = 0; i < (long)(n); i++) printf(" %u", (u)(marks));                                               \
        printf("\n");                                                                                                 \
    } while (0)
static int out[1 << 16];
