/* Diamonds of all types, a function each: in every turn of its loop half of the lanes take one arm and half the other.
   A turn's fetches before and after branch fusion tell whether it paid. The arms store to different places, or
   compilers would turn them into choices by themselves. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
enum { THREADS = 8, TURNS = 16, PLACES = 40 };
typedef float four __attribute__((vector_size(16)));
typedef int ints __attribute__((vector_size(16)));
typedef struct { int8_t i8[PLACES]; uint8_t u8[PLACES]; int16_t i16[PLACES]; uint16_t u16[PLACES]; int32_t i32[PLACES]; uint32_t u32[PLACES];
    int64_t i64[PLACES]; uint64_t u64[PLACES]; __int128 i128[PLACES]; float f32[PLACES]; double f64[PLACES]; long double f80[PLACES];
    four v4f[PLACES]; ints v4i[PLACES]; int *to[PLACES]; int side[PLACES]; } memory;
static memory all[THREADS];
#define KERNEL(name, T, field, then, other) \
    __attribute__((noinline)) void k_##name(memory *m) \
    { \
        for (int i = 0; i < TURNS; i++) { \
            T *p = m->field + i, x = p[0], y = p[1]; int *q = m->i32 + i; (void)x, (void)y, (void)q; \
            if (m->side[i]) { then } else { other } \
        } \
    }
/* A long row of like arithmetic on different values. */
#define ROW(name, T, field) \
    KERNEL(name, T, field, T r = x * y + 3; r = r * x - y; r = r * r + x; r = r * y - x; r = r * r + y; r = r * x + y; p[2] = r; , \
        T r = y * x + 5; r = r * y - x; r = r * r + y; r = r * x - y; r = r * r + x; r = r * y + x; p[3] = r - 1; q[1] = 7;)
/* The same row, with different values at its beginning only. */
#define ALIKE(name, T, field) \
    KERNEL(name, T, field, T a = x + 3; T b = y; T r = a * b - a; r = r * r + b; r = r * a - b; r = r * b + a; r = r * r + r; p[2] = r; , \
        T a = y - 5; T b = x; T r = a * b - a; r = r * r + b; r = r * a - b; r = r * b + a; r = r * r + r; p[3] = r; q[1] = 7;)
/* A little arithmetic, and an update of one side only. */
#define SHORT(name, T, field, op) KERNEL(name, T, field, p[0] = x op y; p[3] = x * y; , p[1] = y op (x + 2); p[2] = y * x * x; q[1] ^= 3;)
#define DIVIDE(name, T, field, op) \
    KERNEL(name, T, field, p[0] = x op ((y & 63) | 1); p[3] = x * y; , p[1] = y op ((x & 31) | 2); p[2] = y * x * x; q[1] ^= 3;)
/* One operation each, in different places. */
#define ONE(name, T, field, f, g) KERNEL(name, T, field, p[2] = f; , p[3] = g; q[2] = 1;)
ROW(row_i8, int8_t, i8) ROW(row_u8, uint8_t, u8) ROW(row_i16, int16_t, i16) ROW(row_u16, uint16_t, u16)
ROW(row_i32, int32_t, i32) ROW(row_u32, uint32_t, u32) ROW(row_i64, int64_t, i64) ROW(row_u64, uint64_t, u64)
ROW(row_i128, __int128, i128) ROW(row_f32, float, f32) ROW(row_f64, double, f64) ROW(row_f80, long double, f80)
ROW(row_v4f, four, v4f) ROW(row_v4i, ints, v4i)
ALIKE(alike_i8, int8_t, i8) ALIKE(alike_u8, uint8_t, u8) ALIKE(alike_i16, int16_t, i16) ALIKE(alike_u16, uint16_t, u16)
ALIKE(alike_i32, int32_t, i32) ALIKE(alike_u32, uint32_t, u32) ALIKE(alike_i64, int64_t, i64) ALIKE(alike_u64, uint64_t, u64)
ALIKE(alike_i128, __int128, i128) ALIKE(alike_f32, float, f32) ALIKE(alike_f64, double, f64) ALIKE(alike_f80, long double, f80)
ALIKE(alike_v4f, four, v4f) ALIKE(alike_v4i, ints, v4i)
SHORT(short_i16, int16_t, i16, -) SHORT(short_i32, int32_t, i32, -) SHORT(short_i64, int64_t, i64, -) SHORT(short_f32, float, f32, /)
SHORT(short_f64, double, f64, /) SHORT(short_f80, long double, f80, /) SHORT(short_v4f, four, v4f, /) DIVIDE(divide_i32, int32_t, i32, /)
DIVIDE(divide_i64, int64_t, i64, /) DIVIDE(divide_u64, uint64_t, u64, /) DIVIDE(remainder_u32, uint32_t, u32, %) DIVIDE(divide_u8, uint8_t, u8, /)
ONE(by_constants_i32, int32_t, i32, x / 7, y / 9) ONE(by_constants_u64, uint64_t, u64, x / 1000, y / 77)
ONE(by_one_constant_i32, int32_t, i32, x / 7 + 1, y / 7 - 1) ONE(by_one_constant_i64, int64_t, i64, x % 1000 + 4, y % 1000 - 9)
ONE(by_powers_i32, int32_t, i32, x / 8, y / 16) ONE(shift_u32, uint32_t, u32, x << (y & 7), y >> (x & 7))
ONE(root_f64, double, f64, sqrt(x) + y, sqrt(y) * x) ONE(power_f64, double, f64, pow(x, y), pow(y, 3 * x) + 1)
ONE(absolute_f64, double, f64, fabs(x) * y + x, fabs(y) * x - y) ONE(convert_f64, double, f64, (double)q[0] * x, (double)q[1] + x)
KERNEL(fused_f64, double, f64, p[2] = x * y + x; p[3] = x * x + y; p[4] = y * y + x; , p[3] = y * x + y; p[5] = y * y + x; p[2] = x * x + 4; q[0] = 3;)
KERNEL(loads_i32, int32_t, i32, q[2] = m->to[x & 15][y & 15]; , q[3] = m->to[y & 15][x & 7] + 1; q[4] = 1;)
KERNEL(chase_i32, int32_t, i32, int a = m->i32[x & 15]; a = m->i32[a & 15]; a = m->i32[a & 15]; a = m->i32[a & 15]; q[2] = a; ,
    int a = m->i32[y & 15]; a = m->i32[a & 15]; a = m->i32[a & 15]; a = m->i32[a & 15]; q[3] = a + 1; q[4] = 1;)
KERNEL(stores_i64, int64_t, i64, p[2] = 1; p[4] = x; p[6] = y; , p[3] = 2; p[5] = y; p[7] = x; p[8] = 0;)
KERNEL(stores_f64, double, f64, p[2] = 1; p[4] = x; p[6] = y; , p[3] = 2; p[5] = y; p[7] = x; q[8] = 0;)
KERNEL(copy, int32_t, i32, memcpy(m->v4f, m->v4i, 48); q[2] = 1; , memcpy(m->v4f + 4, m->v4i + 4, 48); q[3] = 1;)
KERNEL(largest_i32, int32_t, i32, q[2] = (x > y ? x : y) * x; , int z = x + 4; q[3] = (z > y ? z : y) * y; q[4] = 0;)
KERNEL(pointers, int32_t, i32, m->to[i] = m->i32 + x % 3; , m->to[i + 1] = m->i32 + y % 5; q[4] = 0;)
KERNEL(bits_u64, uint64_t, u64, p[2] = (x ^ y) & 0xff00ff | x << 3; , p[3] = (y ^ x << 1) & 0xff0f | y << 5; q[4] = 0;)
KERNEL(mostly_apart_i32, int32_t, i32, q[2] = x * 3; q[3] ^= y; q[4] |= x; q[5] &= y; , q[6] += x << 2; q[7] -= y; q[2] = x - y * 3; q[9] = 8;)
KERNEL(one_of_many_f64, double, f64, double r = x * y; q[2] = 1; r = r + 3; q[3] ^= 4; p[2] = r / y; , double r = y * 3; q[4] = 1; q[5] ^= 4; r = r - x; p[3] = x / r; q[9] = 1;)
static void *work(void *m)
{
#define RUN(name) k_##name(m);
    RUN(row_i8) RUN(row_u8) RUN(row_i16) RUN(row_u16) RUN(row_i32) RUN(row_u32) RUN(row_i64) RUN(row_u64) RUN(row_i128) RUN(row_f32) RUN(row_f64)
    RUN(alike_i8) RUN(alike_u8) RUN(alike_i16) RUN(alike_u16) RUN(alike_i32) RUN(alike_u32) RUN(alike_i64)
    RUN(alike_u64) RUN(alike_i128) RUN(alike_f32) RUN(alike_f64) RUN(alike_f80) RUN(alike_v4f) RUN(alike_v4i)
    RUN(row_f80) RUN(row_v4f) RUN(row_v4i) RUN(short_i16) RUN(short_i32) RUN(short_i64) RUN(short_f32) RUN(short_f64) RUN(short_f80) RUN(short_v4f)
    RUN(divide_i32) RUN(divide_i64) RUN(divide_u64) RUN(remainder_u32) RUN(divide_u8) RUN(by_constants_i32) RUN(by_constants_u64)
    RUN(by_one_constant_i32) RUN(by_one_constant_i64) RUN(by_powers_i32) RUN(shift_u32) RUN(root_f64) RUN(power_f64) RUN(absolute_f64)
    RUN(convert_f64) RUN(fused_f64) RUN(loads_i32) RUN(chase_i32) RUN(stores_i64) RUN(stores_f64) RUN(copy) RUN(largest_i32) RUN(pointers)
    RUN(bits_u64) RUN(mostly_apart_i32) RUN(one_of_many_f64)
    return 0;
}
int main(void)
{
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        memory *m = all + t;
        for (int i = 0; i < PLACES; i++) {
            m->side[i] = (t ^ i) & 1;
            m->i8[i] = m->u8[i] = i % 50 + 1 + t, m->i16[i] = m->u16[i] = i * 3 + 1 + t, m->i32[i] = m->u32[i] = i * 5 + 1 + t, m->i64[i] = m->u64[i] = i * 7 + 1 + t;
            m->i128[i] = i + 1, m->f32[i] = m->f64[i] = m->f80[i] = i * 0.5 + 1 + t, m->v4f[i] = (four){ i + 1, 2, 3, 4 }, m->v4i[i] = (ints){ i + 1, 2, 3, 4 };
            m->to[i] = m->i32 + i % 20;
        }
        pthread_create(&threads[t], 0, work, m);
    }
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], 0);
    unsigned sum = 0;
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < PLACES; i++) sum = sum * 31 + all[t].i32[i] + (unsigned)all[t].i64[i] + (unsigned)all[t].v4i[i][0] + all[t].u8[i];
    printf("%u\n", sum);
    return 0;
}
