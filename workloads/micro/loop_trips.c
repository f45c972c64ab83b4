/* A loop of 3 instructions, run lane + 1 times: 1, 2, 3 and 4 trips by 4 lanes.
 *
 *     loop: add dec jns | mov shr ret
 *
 * The function opens with the loop itself, so that no branch lies before it. The low 16 bits of the argument count the
 * trips down, the bits above count them up. Whoever leaves the loop stands at larger addresses and waits for the last:
 * 4 x 3 + 3 = 15 fetches under every model, for 3 x (1 + 2 + 3 + 4) + 4 x 3 = 42 thread instructions.
 *
 * expect: region kernel
 * expect: lanes 4
 * expect: thread-instructions 42
 * expect: minpc 15
 * expect: minsp-pc 15
 * expect: maxfun-minpc:mode=1 15
 * expect: long:n=4 15
 * expect: ipdom 15
 */
#define PROGRAM "loop_trips"

long kernel(long lane);

__asm__(".text\n"
        ".p2align 4\n"
        ".globl kernel\n"
        ".type kernel, @function\n"
        "kernel:\n"
        "    add $65536, %rdi\n"
        "    dec %di\n"
        "    jns kernel\n"
        "    mov %rdi, %rax\n"
        "    shr $16, %rax\n"
        "    ret\n"
        ".size kernel, . - kernel\n");

static long expected(long lane) {
    return lane + 1;
}

#include "kernel.h"
