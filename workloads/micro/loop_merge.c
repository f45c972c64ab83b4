/* A loop in a loop of 3 turns, figures 2(b) and 3(b) of Damani et al. (CGO 2020). Each lane runs the inner loop 6 times
 * in all: 4 + 1 + 1, 1 + 4 + 1, 1 + 1 + 4 and 2 + 2 + 2 times.
 *
 *     init: 5 | prolog: 1 | body: 12 | epilog: 4 | ret
 *
 * Lanes that wait for each other behind the inner loop issue its body 4 + 4 + 4 times (figure 3(b)(i)): 5 + 12 x 12 +
 * 3 x (1 + 4) + 1 = 165 fetches, for 4 x (5 + 6 x 12 + 3 x 5 + 1) = 372 thread instructions. Repacked ideally (ii) it
 * is issued 6 times, always for all: 93. Collected at the body they do that, and issue prolog and epilog 5 times each in
 * place of 3 (iii): 103.
 *
 * expect: region kernel
 * expect: lanes 4
 * expect: thread-instructions 372
 * expect: barrier 165
 * expect: ipdom 165
 */
#define PROGRAM "loop_merge"

long kernel(long lane);

__asm__(".section .rodata\n"
        ".Ltrips:\n"
        "    .byte 4, 1, 1, 0, 1, 4, 1, 0, 1, 1, 4, 0, 2, 2, 2, 0\n"
        ".text\n"
        ".p2align 4\n"
        ".globl kernel\n"
        ".type kernel, @function\n"
        "kernel:\n"
        "    and $3, %edi\n"
        "    lea .Ltrips(%rip), %rsi\n"
        "    lea (%rsi, %rdi, 4), %rsi\n"
        "    xor %ecx, %ecx\n"
        "    xor %eax, %eax\n"
        ".Lprolog:\n"
        "    movzbl (%rsi, %rcx), %edx\n"
        ".Lbody:\n"
        ".rept 5\n"
        "    lea 1(%rax, %rax), %rax\n"
        "    and $1023, %rax\n"
        ".endr\n"
        "    dec %edx\n"
        "    jnz .Lbody\n"
        "    lea 1(%rax, %rcx), %rax\n"
        "    inc %rcx\n"
        "    cmp $3, %rcx\n"
        "    jne .Lprolog\n"
        "    ret\n"
        ".size kernel, . - kernel\n");

static long expected(long lane) {
    static const int trips[4][3] = {{4, 1, 1}, {1, 4, 1}, {1, 1, 4}, {2, 2, 2}};
    long sum = 0;
    for (int turn = 0; turn < 3; turn++) {
        /* Five times 2 x + 1 is 32 x + 31. */
        for (int trip = 0; trip < trips[lane % 4][turn]; trip++) {
            sum = (32 * sum + 31) % 1024;
        }
        sum += 1 + turn;
    }
    return sum;
}

#include "kernel.h"
