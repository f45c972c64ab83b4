/* callee_above.c and callee_below.c after the fusion of their two call sites: what differed between the arms is chosen
 * without a branch before the one call that is left.
 *
 *     kernel: mov and imul add | call | add ret        callee: mov lea add imul ret
 *
 * No lane ever leaves the others: 12 instructions in each of 4 lanes are 48 thread instructions (4 more than before
 * the fusion) and 12 fetches under every model.
 *
 * expect: region kernel
 * expect: lanes 4
 * expect: thread-instructions 48
 * expect: minpc 12
 * expect: minsp-pc 12
 * expect: maxfun-minpc:mode=1 12
 * expect: long:n=4 12
 * expect: ipdom 12
 */
#define PROGRAM "callee_fused"

long kernel(long lane);

__asm__(".text\n"
        ".p2align 4\n"
        ".globl kernel\n"
        ".type kernel, @function\n"
        "kernel:\n"
        "    mov %edi, %edx\n"
        "    and $1, %edx\n"
        "    imul $1000, %edx, %edx\n"
        "    add %rdi, %rdx\n"
        "    call callee\n"
        "    add %rdx, %rax\n"
        "    ret\n"
        ".size kernel, . - kernel\n"
        ".type callee, @function\n"
        "callee:\n"
        "    mov %rdi, %rax\n"
        "    lea (%rax, %rax, 2), %rax\n"
        "    add $11, %rax\n"
        "    imul %rax, %rax\n"
        "    ret\n"
        ".size callee, . - callee\n");

static long expected(long lane) {
    long called = (3 * lane + 11) * (3 * lane + 11);
    return called + (lane % 2 == 0 ? 0 : 1000) + lane;
}

#include "kernel.h"
