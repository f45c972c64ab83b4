/* Functions of numbers that have the same instructions everywhere and no branch, as those of a GPU are: none of the
 * C library's is called, whose code would be part of a trace. */
#ifndef WORKLOADS_NUMBERS_H
#define WORKLOADS_NUMBERS_H

#include <stdint.h>

#define WORKLOADS_INLINE static inline __attribute__((always_inline))

/* The natural logarithm of a number above 0, to seven digits. */
WORKLOADS_INLINE double logarithm(double number) {
    uint64_t bits;
    __builtin_memcpy(&bits, &number, sizeof bits);
    /* From 0.71 to 1.41, times a power of two. */
    int64_t power = (int64_t)((bits - 0x3fe6a09e667f3bcdu) >> 52) << 52 >> 52;
    bits -= (uint64_t)power << 52;
    double m;
    __builtin_memcpy(&m, &bits, sizeof m);
    double s = (m - 1) / (m + 1), square = s * s;
    double series = 2 + square * (2.0 / 3 + square * (2.0 / 5 + square * (2.0 / 7 + square * (2.0 / 9))));
    return 0.6931471805599453 * (double)power + s * series;
}

/* Sine of 2 pi times a number from 0 to 1, to five digits. */
WORKLOADS_INLINE double sine_of_turn(double turn) {
    /* From -0.5 to 0.5, and by symmetry from -0.25 to 0.25. */
    double x = 0.5 - turn, away = 0.25 - __builtin_fabs(__builtin_fabs(x) - 0.25);
    double y = 6.283185307179586 * away, square = y * y;
    double sine = y * (1 + square * (-1.0 / 6 + square * (1.0 / 120 + square * (-1.0 / 5040 + square / 362880))));
    return __builtin_copysign(sine, x);
}

/* Cosine of 2 pi times a number from 0 to 1, to five digits. */
WORKLOADS_INLINE double cosine_of_turn(double turn) {
    double x = turn + 0.25;
    return sine_of_turn(x - (double)(int)x);
}

#endif
