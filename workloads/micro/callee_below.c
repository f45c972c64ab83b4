/* Both arms of a branch call the same function of 5 instructions, which is laid out below the caller (at smaller
 * addresses):
 *
 *     callee: mov lea add imul ret        kernel: test jnz | call jmp (even lanes) | call add (odd lanes) | add ret
 *
 * The even lanes enter the callee and have the smallest pc there, so the models that prefer it let them run through
 * alone, as the deepest-lane models and the stack do: the callee is fetched twice, 2 + 2 + 2 + 2 x 5 + 2 = 18. Long
 * does not care for the layout: 13. 4 x (2 + 2 + 2 + 5) = 44 thread instructions.
 *
 * expect: region kernel
 * expect: lanes 4
 * expect: thread-instructions 44
 * expect: minpc 18
 * expect: minsp-pc 18
 * expect: maxfun-minpc:mode=1 18
 * expect: long:n=4 13
 * expect: ipdom 18
 */
#define PROGRAM "callee_below"

long kernel(long lane);

__asm__(".text\n"
        ".p2align 4\n"
        ".type callee, @function\n"
        "callee:\n"
        "    mov %rdi, %rax\n"
        "    lea (%rax, %rax, 2), %rax\n"
        "    add $11, %rax\n"
        "    imul %rax, %rax\n"
        "    ret\n"
        ".size callee, . - callee\n"
        ".globl kernel\n"
        ".type kernel, @function\n"
        "kernel:\n"
        "    test $1, %dil\n"
        "    jnz .Lodd\n"
        "    call callee\n"
        "    jmp .Ljoin\n"
        ".Lodd:\n"
        "    call callee\n"
        "    add $1000, %rax\n"
        ".Ljoin:\n"
        "    add %rdi, %rax\n"
        "    ret\n"
        ".size kernel, . - kernel\n");

static long expected(long lane) {
    long called = (3 * lane + 11) * (3 * lane + 11);
    return called + (lane % 2 == 0 ? 0 : 1000) + lane;
}

#include "kernel.h"
