/* SIGTRAP belongs to the program: raised, by int3, while blocked, ignored, and after all signals were blocked for a while. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t count;

static void note(int number) {
    (void)number;
    count++;
}

static void *nothing(void *p) { return p; }

int main(void) {
    pthread_t thread;
    sigset_t trap, old;
    struct sigaction action = {.sa_handler = note};
    sigaction(SIGTRAP, &action, 0);
    raise(SIGTRAP);
    raise(SIGTRAP);
    printf("raised %d\n", (int)count);
    __asm__ volatile("int3");
    printf("int3 %d\n", (int)count);
    pthread_create(&thread, 0, nothing, 0);
    pthread_join(thread, 0);
    raise(SIGTRAP);
    printf("after a thread %d\n", (int)count);
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    sigprocmask(SIG_BLOCK, &trap, 0);
    raise(SIGTRAP);
    printf("blocked %d\n", (int)count);
    sigprocmask(SIG_UNBLOCK, &trap, &old);
    printf("unblocked %d, was blocked %d\n", (int)count, sigismember(&old, SIGTRAP));
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, 0);
    raise(SIGUSR1);
    raise(SIGTRAP);
    printf("after a handler with a full mask %d\n", (int)count);
    signal(SIGTRAP, SIG_IGN);
    raise(SIGTRAP);
    printf("ignored %d\n", (int)count);
    unsigned long flags;
    __asm__ volatile("pushfq; popq %0" : "=r"(flags));
    printf("flag %lu\n", flags >> 8 & 1);
    signal(SIGTRAP, SIG_DFL);
    fflush(stdout);
    raise(SIGTRAP);
    return 0;
}
