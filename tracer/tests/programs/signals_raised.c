/* Signals that a program sends to itself, more of each than it takes until they are handled by a shorter way: in handlers too, on another stack, with a
   call that is restarted behind one, and with handlers that change what they return to. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { TIMES = 40 };
static char alternate[65536];
static volatile long first, second, moved;
static sigjmp_buf back;

static void send(int signal) { syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal); }

static void outer(int signal, siginfo_t *info, void *context) {
    (void)info, (void)context;
    first += signal;
    send(SIGUSR2);
}

static void inner(int signal) { second += signal * first; }

static void moves(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    ucontext_t *interrupted = context;
    interrupted->uc_mcontext.gregs[REG_R11] = 77; /* the call that sent it changes r11 anyway */
    interrupted->uc_mcontext.gregs[REG_RBX]++;
    if (++moved % 10 == 0) siglongjmp(back, 1);
}

int main(void) {
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, 0);
    struct sigaction action = {.sa_sigaction = outer, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGUSR1, &action, 0);
    action.sa_handler = inner, action.sa_flags = 0, sigfillset(&action.sa_mask);
    sigaction(SIGUSR2, &action, 0);
    action.sa_sigaction = moves, action.sa_flags = SA_SIGINFO, sigemptyset(&action.sa_mask);
    sigaction(SIGHUP, &action, 0);
    for (int i = 0; i < TIMES; i++) send(SIGUSR1);
    register long kept __asm__("rbx") = 0;
    for (volatile int i = 0; i < TIMES; i++)
        if (!sigsetjmp(back, 1)) send(SIGHUP);
    __asm__ volatile("" : "+r"(kept));
    struct sigaction now;
    sigaction(SIGUSR1, 0, &now);
    printf("%ld %ld %ld %d\n", first, second, moved, now.sa_sigaction == outer);
    return 0;
}
