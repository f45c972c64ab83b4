/* Both arms of a branch call the same function of 5 instructions, which is laid out above the caller (at larger
 * addresses):
 *
 *     kernel: test jnz | call jmp (even lanes) | call add (odd lanes) | add ret        callee: mov lea add imul ret
 *
 * The models that look at the pc alone hold the even lanes at the callee's entry, since the odd lanes' call is at a
 * smaller pc: the callee is fetched once, 2 + 2 + 2 + 5 + 2 = 13. Those that prefer the deepest lane let the even
 * lanes run through the callee first, as the stack does: 18. 4 x (2 + 2 + 2 + 5) = 44 thread instructions.
 *
 * expect: region kernel
 * expect: lanes 4
 * expect: thread-instructions 44
 * expect: minpc 13
 * expect: minsp-pc 18
 * expect: maxfun-minpc:mode=1 18
 * expect: long:n=4 13
 * expect: ipdom 18
 */
#define PROGRAM "callee_above"

long kernel(long lane);

__asm__(".text\n"
        ".p2align 4\n"
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
