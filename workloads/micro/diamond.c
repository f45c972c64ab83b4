/* A diamond whose join is laid out last: the arms have 3 and 1 instructions.
 *
 *     test  jnz   | lea add jmp (even lanes) | mov (odd lanes) | add ret
 *
 * Even lanes fall through into the arm of 3, odd lanes jump to the arm of 1, and both go on at the join, which has the
 * largest addresses: lanes that wait for the smallest pc wait in the right place. 4 lanes of 2 + 2 shared instructions
 * and arms of 3, 1, 3, 1: 24 thread instructions, in 2 + 3 + 1 + 2 = 8 fetches.
 *
 * expect: region kernel
 * expect: lanes 4
 * expect: thread-instructions 24
 * expect: minpc 8
 * expect: minsp-pc 8
 * expect: maxfun-minpc:mode=1 8
 * expect: long:n=4 8
 * expect: ipdom 8
 */
#define PROGRAM "diamond"

long kernel(long lane);

__asm__(".text\n"
        ".p2align 4\n"
        ".globl kernel\n"
        ".type kernel, @function\n"
        "kernel:\n"
        "    test $1, %dil\n"
        "    jnz .Lelse\n"
        "    lea 1(%rdi), %rax\n"
        "    add %rax, %rax\n"
        "    jmp .Ljoin\n"
        ".Lelse:\n"
        "    mov $7, %eax\n"
        ".Ljoin:\n"
        "    add %rdi, %rax\n"
        "    ret\n"
        ".size kernel, . - kernel\n");

static long expected(long lane) {
    return lane % 2 == 0 ? 3 * lane + 2 : lane + 7;
}

#include "kernel.h"
