/* `if (a || b) X; Y`, as every compiler lays it out: X has two entries, so that no diamond holds it.
 *
 *     test jz X | cmp jne Y | X: lea add jmp | Y: lea ret
 *
 * a holds for lane 0, b for lane 1. Lanes that order by pc meet at X: 2 + 2 + 3 + 2 = 9 fetches. The post-dominator of
 * both branches is Y, so the stack runs X once for a and once for b: 12. Long runs lane 0 through X before lane 1 has
 * reach its second test: 12 as well. X ends with a jump to the next instruction, so that Y starts a block whichever
 * way a lane arrives. Lane 0 runs 2 + 3 + 2, lane 1 2 + 2 + 3 + 2, lanes 2 and 3 2 + 2 + 2: 28 thread instructions.
 *
 * expect: region kernel
 * expect: lanes 4
 * expect: thread-instructions 28
 * expect: minpc 9
 * expect: minsp-pc 9
 * expect: maxfun-minpc:mode=1 9
 * expect: long:n=4 12
 * expect: ipdom 12
 */
#define PROGRAM "unstructured_or"

long kernel(long lane);

__asm__(".text\n"
        ".p2align 4\n"
        ".globl kernel\n"
        ".type kernel, @function\n"
        "kernel:\n"
        "    test %rdi, %rdi\n"
        "    jz .Lx\n"
        "    cmp $1, %rdi\n"
        "    jne .Ly\n"
        ".Lx:\n"
        "    lea 10(%rdi), %rdi\n"
        "    add %rdi, %rdi\n"
        "    jmp .Ly\n"
        ".Ly:\n"
        "    lea 5(%rdi), %rax\n"
        "    ret\n"
        ".size kernel, . - kernel\n");

static long expected(long lane) {
    return lane <= 1 ? 2 * (lane + 10) + 5 : lane + 5;
}

#include "kernel.h"
