/* A handler that returns, one that jumps out, one on a stack of its own, and a fault that is mended by jumping. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static sigjmp_buf out;
static volatile sig_atomic_t count;

static void note(int number) { count += number; }
static void jump(int number) { siglongjmp(out, number); }

static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(number, &action, 0);
}

int main(void) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, 0);
    handle(SIGUSR1, note, 0);
    handle(SIGUSR2, note, SA_ONSTACK);
    handle(SIGSEGV, jump, SA_ONSTACK);
    handle(SIGFPE, jump, 0);
    handle(SIGRTMIN + 2, note, SA_SIGINFO);
    raise(SIGUSR1);
    raise(SIGUSR2);
    raise(SIGRTMIN + 2);
    printf("%d\n", (int)count);
    if (sigsetjmp(out, 1) == 0) *(volatile int *)16 = 1;
    else printf("mended a fault\n");
    if (sigsetjmp(out, 1) == 0) raise(SIGFPE);
    else printf("jumped out\n");
    return 0;
}
