/* Structured kernels for what `linearize` does where it is asked: loops to merge, and arms to
 * interleave. Blocks whose issues are counted call functions of their own. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define LANES 4
static volatile long ran[LANES][16];
#define BLOCK(name, number) \
    __attribute__((noinline)) static void name(long lane) { ran[lane][number] += 3 * number + 1; }

BLOCK(merge_s1, 0)
BLOCK(merge_s2, 1)
BLOCK(merge_s3, 2)

/* Figure 2(b): of each pair of lanes one runs the inner loop 10 times and then 15, the other the other way round. */
__attribute__((noinline)) static void merge(long lane) {
#pragma clang loop unroll(disable)
    for (long i = 0; i < 2; i++) {
        merge_s1(lane);
        long trips = (i ^ lane) & 1 ? 15 : 10;
        for (long j = 0; j < trips; j++) {
            merge_s2(lane);
        }
        merge_s3(lane);
    }
}

static volatile long table[64];

/* Figure 2(a): what each arm loads is used in the blocks behind it. */
__attribute__((noinline)) static long arms(long lane) {
    long sum = 1;
    if (lane & 1) {
        long a = table[lane];
        sum = lane * 5 + 3;
        if (lane & 2) {
            sum += a * 7;
        } else {
            sum ^= a + 9;
        }
    } else {
        long b = table[lane + 32];
        sum = lane * 11 + 7;
        if (lane & 2) {
            sum -= b * 3;
        } else {
            sum ^= b + 21;
        }
    }
    return sum;
}

static void *kernel(void *argument) {
    long lane = (long)(intptr_t)argument;
    merge(lane);
    ran[lane][13] = arms(lane);
    return NULL;
}

int main(void) {
    pthread_t threads[LANES];
    for (int i = 0; i < 64; i++) {
        table[i] = i * i;
    }
    for (long i = 0; i < LANES; i++) {
        pthread_create(&threads[i], NULL, kernel, (void *)(intptr_t)i);
    }
    for (long i = 0; i < LANES; i++) {
        pthread_join(threads[i], NULL);
        for (int j = 0; j < 16; j++) {
            printf("%ld ", ran[i][j]);
        }
        printf("\n");
    }
    return 0;
}
