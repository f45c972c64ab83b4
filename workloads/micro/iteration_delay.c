/* A branch in a loop that each lane takes in a turn of its own, figures 1 and 2(a) of Damani et al. (CGO 2020): lane i
 * in turn i of 4.
 *
 *     init: 2 | prolog: 3 | expensive: 12 | epilog: 3 | ret
 *
 * Lanes that wait for each other behind the branch issue the expensive code once per turn: 2 + 4 x (3 + 12 + 3) + 1 =
 * 75 fetches, for 4 x (2 + 4 x 6 + 12 + 1) = 156 thread instructions. Collected at its first instruction they issue it
 * once.
 *
 * expect: region kernel
 * expect: lanes 4
 * expect: thread-instructions 156
 * expect: barrier 75
 * expect: ipdom 75
 */
#define PROGRAM "iteration_delay"

long kernel(long lane);

__asm__(".text\n"
        ".p2align 4\n"
        ".globl kernel\n"
        ".type kernel, @function\n"
        "kernel:\n"
        "    xor %ecx, %ecx\n"
        "    xor %eax, %eax\n"
        ".Lprolog:\n"
        "    inc %rax\n"
        "    cmp %rdi, %rcx\n"
        "    jne .Lepilog\n"
        ".rept 6\n"
        "    lea (%rax, %rax, 2), %rax\n"
        "    add $7, %rax\n"
        ".endr\n"
        ".Lepilog:\n"
        "    inc %rcx\n"
        "    cmp $4, %rcx\n"
        "    jne .Lprolog\n"
        "    ret\n"
        ".size kernel, . - kernel\n");

/* Six times 3 x + 7, of what the turns up to the lane's make. */
static long expected(long lane) {
    return lane >= 4 ? 4 : 729 * (lane + 1) + 7 * (1 + 3 + 9 + 27 + 81 + 243) + 3 - lane;
}

#include "kernel.h"
