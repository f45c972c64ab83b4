/* Signals whose handlers hide or raise others, more of each than are needed until they are handled by a shorter way: with all signals blocked, with a
   fault inside, with a mask or a place to go on that the handler changes, queued with values, reset when they come, and waited for with another mask. Handlers change where the program goes on only with an argument: not all who check a trace
   know of that. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { TIMES = 40, QUEUED = 10 };
static volatile long outer, inner, faults, masks, moved, queued, order, reset, waited;
static int *volatile nowhere = (int *)8;

static void send(int signal) { syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal); }

static void hides_all(int signal) {
    outer++;
    send(SIGUSR2);
    if (inner >= outer) outer += 1000 * signal;
}

static void comes_late(int signal) { inner += signal == SIGUSR2; }

/* The load that faults is two bytes long: 8b 00. */
static void skips(int signal, siginfo_t *info, void *context) {
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
    faults += signal == SIGSEGV && info->si_addr == (void *)8;
}

static void faults_inside(int signal) {
    (void)signal;
    int value;
    __asm__ volatile(".byte 0x8b, 0x00" : "=a"(value) : "a"(nowhere));
}

static void blocks(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGSEGV);
}

extern char elsewhere[];
static void goes_elsewhere(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = (greg_t)elsewhere;
}

static void takes(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    order = order * 3 + info->si_value.sival_int;
    queued++;
}

static void counts(int signal) { reset += signal == SIGHUP; }

static void waits(int signal) { waited += signal == SIGUSR1; }

static void handle(int signal, void *handler, int flags, int all) {
    struct sigaction action = {.sa_flags = flags};
    action.sa_sigaction = handler;
    if (all) sigfillset(&action.sa_mask);
    sigaction(signal, &action, 0);
}

int main(int argc, char **argv) {
    int turns = argc > 1 && argv[1] ? TIMES : 0;
    handle(SIGUSR1, hides_all, 0, 1), handle(SIGUSR2, comes_late, 0, 0);
    for (int i = 0; i < TIMES; i++) send(SIGUSR1);
    handle(SIGSEGV, skips, SA_SIGINFO, 0), handle(SIGUSR1, faults_inside, SA_NODEFER, 0);
    for (int i = 0; i < turns; i++) send(SIGUSR1);
    handle(SIGUSR1, blocks, SA_SIGINFO, 0);
    sigset_t segv, before, usr1, others;
    sigemptyset(&segv), sigaddset(&segv, SIGSEGV);
    for (int i = 0; i < TIMES; i++) {
        send(SIGUSR1);
        sigprocmask(SIG_UNBLOCK, &segv, &before);
        masks += sigismember(&before, SIGSEGV);
    }
    handle(SIGUSR1, goes_elsewhere, SA_SIGINFO, 0);
    for (volatile int i = 0; i < turns; i++) {
        long number = SYS_tgkill, process = getpid(), thread = syscall(SYS_gettid), signal = SIGUSR1;
        __asm__ volatile("syscall; ud2; .globl elsewhere; elsewhere:"
                         : "+a"(number) : "D"(process), "S"(thread), "d"(signal) : "rcx", "r11", "memory");
        moved++;
    }
    handle(SIGRTMIN, takes, SA_SIGINFO, 0);
    sigset_t real;
    sigemptyset(&real), sigaddset(&real, SIGRTMIN);
    for (int round = 0; round < TIMES / QUEUED; round++) {
        sigprocmask(SIG_BLOCK, &real, 0);
        for (int i = 0; i < QUEUED; i++) sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
        sigprocmask(SIG_UNBLOCK, &real, 0);
    }
    for (int i = 0; i < TIMES; i++) handle(SIGHUP, counts, SA_RESETHAND | SA_NODEFER, 0), send(SIGHUP);
    handle(SIGUSR1, waits, 0, 0);
    sigemptyset(&usr1), sigaddset(&usr1, SIGUSR1), sigfillset(&others), sigdelset(&others, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, 0);
    for (int i = 0; i < TIMES; i++) send(SIGUSR1), sigsuspend(&others);
    printf("%ld %ld %ld %ld %ld %ld %lx %ld %ld\n", outer, inner, faults, masks, moved, queued, order, reset, waited);
    return 0;
}
