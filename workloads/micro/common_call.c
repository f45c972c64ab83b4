/* Both sides of a branch call one function, figure 2(c) of Damani et al. (CGO 2020): even lanes at once, odd lanes with
 * something before and behind the call.
 *
 *     foo: 13 | test: 3 | call jmp (even) | before: 1 call after: 1 (odd) | ret
 *
 * Lanes that wait for each other behind the branch issue foo twice: 3 + 2 + 3 + 2 x 13 + 1 = 35 fetches, for
 * 2 x (3 + 2 + 13 + 1) + 2 x (3 + 3 + 13 + 1) = 78 thread instructions. Collected at its first instruction they issue it
 * once: 22.
 *
 * expect: region kernel
 * expect: lanes 4
 * expect: thread-instructions 78
 * expect: barrier 35
 * expect: ipdom 35
 */
#define PROGRAM "common_call"

long kernel(long lane);

__asm__(".text\n"
        ".p2align 4\n"
        ".type foo, @function\n"
        "foo:\n"
        ".rept 6\n"
        "    lea (%rax, %rax, 2), %rax\n"
        "    add $7, %rax\n"
        ".endr\n"
        "    ret\n"
        ".size foo, . - foo\n"
        ".globl kernel\n"
        ".type kernel, @function\n"
        "kernel:\n"
        "    mov %rdi, %rax\n"
        "    test $1, %dil\n"
        "    jnz .Lodd\n"
        "    call foo\n"
        "    jmp .Ljoin\n"
        ".Lodd:\n"
        "    inc %rax\n"
        "    call foo\n"
        "    dec %rax\n"
        ".Ljoin:\n"
        "    ret\n"
        ".size kernel, . - kernel\n");

/* Six times 3 x + 7. */
static long expected(long lane) {
    return 729 * (lane + lane % 2) + 7 * (1 + 3 + 9 + 27 + 81 + 243) - lane % 2;
}

#include "kernel.h"
