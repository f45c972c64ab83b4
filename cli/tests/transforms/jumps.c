/* Kernels whose control flow is not structured, for `linearize`. Each block of a kernel calls a function of its own, so
 * that a replay tells how often the block is issued: the first instruction of the function, once for each group of lanes.
 *
 * figure_1 is the example of the paper's figure 1 with its four threads: 0 and 1 take c1; of the others, 2 takes c2; and
 * 0 alone takes c3. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define LANES 4
static volatile long ran[LANES][32];
/* What a block does: nothing that another block does too. */
#define BLOCK(name, number) \
    __attribute__((noinline)) static void name(long lane) { ran[lane][number] += 3 * number + 1; }
#define TEST(name, number, condition) \
    __attribute__((noinline)) static int name(long lane) { ran[lane][number] += 5 * number + 2; return condition; }

TEST(figure_1_b1, 1, lane < 2)
TEST(figure_1_b2, 2, lane == 2)
TEST(figure_1_b3, 3, lane == 0)
BLOCK(figure_1_b4, 4)
BLOCK(figure_1_b5, 5)
BLOCK(figure_1_b6, 6)

__attribute__((noinline)) static void figure_1(long lane) {
    if ((figure_1_b1(lane) || figure_1_b2(lane)) && figure_1_b3(lane)) {
        figure_1_b4(lane);
    } else {
        figure_1_b5(lane);
    }
    figure_1_b6(lane);
}

TEST(either_a, 7, lane == 0)
TEST(either_b, 8, lane == 1)
BLOCK(either_x, 9)
BLOCK(either_z, 10)

__attribute__((noinline)) static void either(long lane) {
    if (either_a(lane) || either_b(lane)) {
        either_x(lane);
    }
    either_z(lane);
}

TEST(escape_a, 11, lane == 0)
TEST(escape_b, 12, lane == 1)
BLOCK(escape_e, 13)
BLOCK(escape_x, 14)
BLOCK(escape_z, 15)

/* No edge of it is unstructured by the paper's definition 1. */
__attribute__((noinline)) static void escape(long lane) {
    if (escape_a(lane)) {
        goto x;
    }
    if (escape_b(lane)) {
        escape_e(lane);
    x:
        escape_x(lane);
    }
    escape_z(lane);
}

#define TURN(name, number, condition) \
    __attribute__((noinline)) static int name(long lane, long i) { ran[lane][number] += 7 * number + i; return condition; }
TURN(search_a, 16, lane == i)
TURN(search_b, 17, lane == 2 * i + 1)
BLOCK(search_x, 18)
BLOCK(search_y, 19)
BLOCK(search_z, 20)

__attribute__((noinline)) static void search(long lane) {
    for (long i = 0; i < 3; i++) {
        if (search_a(lane, i)) {
            search_x(lane);
            goto end;
        }
        if (search_b(lane, i)) {
            break;
        }
    }
    search_y(lane);
end:
    search_z(lane);
}

static void *kernel(void *argument) {
    long lane = (long)(intptr_t)argument;
    figure_1(lane);
    either(lane);
    escape(lane);
    search(lane);
    return NULL;
}

int main(void) {
    pthread_t threads[LANES];
    for (long i = 0; i < LANES; i++) {
        pthread_create(&threads[i], NULL, kernel, (void *)(intptr_t)i);
    }
    for (long i = 0; i < LANES; i++) {
        pthread_join(threads[i], NULL);
        for (int j = 0; j < 32; j++) {
            printf("%ld ", ran[i][j]);
        }
        printf("\n");
    }
    return 0;
}
