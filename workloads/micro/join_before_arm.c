/* The diamond with one arm laid out after the join:
 *
 *     test  jz   | lea add inc (odd lanes) | join: add ret | mov jmp (even lanes)
 *
 * Odd lanes fall through the arm of 3 into the join; even lanes jump behind it, to an arm of 2 that jumps back. The
 * join has smaller addresses than that arm, so the models that prefer the smallest pc run it with the odd lanes, and
 * once more with the even ones: 2 + 3 + 2 + 2 + 2 = 11 fetches. A stack that reconverges at the post-dominator waits
 * for both, and so does Long, which first runs lane 0: 2 + 3 + 2 + 2 = 9. 4 x (2 + 2) + 2 x 3 + 2 x 2 = 26 thread
 * instructions.
 *
 * expect: region kernel
 * expect: lanes 4
 * expect: thread-instructions 26
 * expect: minpc 11
 * expect: minsp-pc 11
 * expect: maxfun-minpc:mode=1 11
 * expect: long:n=4 9
 * expect: ipdom 9
 */
#define PROGRAM "join_before_arm"

long kernel(long lane);

__asm__(".text\n"
        ".p2align 4\n"
        ".globl kernel\n"
        ".type kernel, @function\n"
        "kernel:\n"
        "    test $1, %dil\n"
        "    jz .Leven\n"
        "    lea 1(%rdi), %rax\n"
        "    add %rax, %rax\n"
        "    inc %rax\n"
        ".Ljoin:\n"
        "    add %rdi, %rax\n"
        "    ret\n"
        ".Leven:\n"
        "    mov $7, %eax\n"
        "    jmp .Ljoin\n"
        ".size kernel, . - kernel\n");

static long expected(long lane) {
    return lane % 2 == 0 ? lane + 7 : 3 * lane + 3;
}

#include "kernel.h"
