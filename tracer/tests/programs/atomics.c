/* Atomic instructions on places that stand in the code, in a table by numbers that are read, in the frame, and in
   memory that another instruction points to; with calls and changes of the stack between. Prints a sum of it all. */
#include <stdio.h>

static long one, table[64], next[64];

__attribute__((noinline)) static long in_frame(long n) {
    volatile char room[n & 63 | 1];
    long own = n;
    room[0] = n;
    __atomic_fetch_add(&own, room[0], 5);
    __atomic_exchange_n(&table[own & 63], own, 5);
    return own;
}

static void take(long *word, long by) {
    long found = 0;
    while (!__atomic_compare_exchange_n(word, &found, found + by, 0, 5, 5)) {}
}

int main(void) {
    long sum = 0, at = 0;
    for (int i = 0; i < 64; i++) next[i] = (i * 29 + 7) & 63;
    for (int i = 0; i < 3000; i++) {
        __atomic_fetch_add(&one, i, 5);
        __atomic_fetch_or(&table[at], i, 5);
        if (i % 3 == 0) sum += in_frame(i);
        if (table[at] & 5) take(&table[(at + 1) & 63], sum);
        __atomic_fetch_sub(&table[next[at]], one, 5);
        at = next[at];
    }
    for (int i = 0; i < 64; i++) sum = sum * 31 + table[i];
    printf("%ld %ld\n", one, sum);
    return 0;
}
