/* Trial division: early exits by even numbers, small factors, and the square of the divisor. */
#include "kernel.h"

static inline u32 is_prime(u32 n)
{
    if (n < 2)
        return 0;
    if (n % 2 == 0)
        return n == 2;
    for (u32 d = 3; d * d <= n; d += 2)
        if (n % d == 0)
            return 0;
    return 1;
}

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 primes = 0;
    (void)mem;
    for (u32 i = 0; i < 24; i++)
        primes += is_prime(in[i * 32 + lane] >> 20);
    return primes;
}
