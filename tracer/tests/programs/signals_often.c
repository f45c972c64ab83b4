/* Signals that come faster than they are handled. argv: how, microseconds between two, turns of each thread's loop, threads beside the first.
   timer: one timer of the process; nested: two, whose handlers interrupt each other and themselves; threads: each thread has signals sent to it without
   end by another, which may fill its stack; long: the same, with handlers that run much code; bounded: none comes while 100 handlers are open; raised: it sends itself one at each turn, and waits for no other; changes: the same, while the first thread says again and again that they are ignored, and handled. The registers of the loops and the floating-point state must survive, handlers must run on the stack that they were given. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 8 };
static char alternate[65536];
static volatile int done, elsewhere, count[MOST + 1];
static volatile double scale = 1;
static long turns;
static __thread int number;
static volatile int bound, is_long, open_handlers[MOST + 1];

static void handle(int signal, siginfo_t *info, void *context) {
    char here;
    if (number == 0 && (&here < alternate || &here >= alternate + sizeof alternate)) elsewhere = 1;
    if (info->si_signo != signal || !context) elsewhere = 2;
    count[number]++;
    scale = scale * 1.0000001 + 0.5;
    __asm__ volatile("xorps %%xmm0, %%xmm0; xorps %%xmm15, %%xmm15; xor %%r11, %%r11" : : : "xmm0", "xmm15", "r11");
}

static void on_own_stack(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    char line[32];
    open_handlers[number]++;
    count[number]++;
    if (is_long) snprintf(line, sizeof line, "%d", count[number]);
    open_handlers[number]--;
}

static struct { double x; long double y; unsigned long k; } result[MOST + 1];

static void print(int of) { printf("%.17g %.20Lg %lx\n", result[of].x, result[of].y, result[of].k); }

static void work(void) {
    double x = 0;
    long double y = 1;
    unsigned long k = 12345;
    for (long i = 0; i < turns; i++) {
        k = k * 6364136223846793005ul + 1442695040888963407ul;
        x += (double)(k >> 40) * 1e-9;
        y = y * 1.0000001L + (long double)(k >> 50) * 1e-9L;
    }
    result[number].x = x, result[number].y = y, result[number].k = k;
}

static void *thread(void *argument) {
    number = (int)(long)argument;
    work();
    return 0;
}

static pthread_t started[MOST];

static void *sender(void *argument) {
    long to = (long)argument;
    while (!done)
        if (!bound || open_handlers[to + 1] < bound) pthread_kill(started[to], SIGUSR1);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int period = atoi(argv[2]), threads = atoi(argv[4]), nested = !strcmp(argv[1], "nested");
    turns = atol(argv[3]);
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, 0);
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    action.sa_sigaction = on_own_stack, action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGPROF, &action, 0), sigaction(SIGUSR1, &action, 0), sigaction(SIGVTALRM, &action, 0);
    pthread_t senders[MOST];
    if (!strcmp(argv[1], "bounded")) bound = 100;
    is_long = !strcmp(argv[1], "long");
    if (!strcmp(argv[1], "raised")) {
        for (long i = 0; i < turns; i++) syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
        printf("%d signals\n", count[0]);
        return 0;
    }
    if (threads) {
        for (long i = 0; i < threads; i++) pthread_create(started + i, 0, thread, (void *)(i + 1));
        for (long i = 0; i < threads; i++) pthread_create(senders + i, 0, sender, (void *)i);
        for (int i = 0; i < 500 && !strcmp(argv[1], "changes"); i++) {
            struct timespec nap = {0, 20000};
            signal(SIGUSR1, SIG_IGN), nanosleep(&nap, 0);
            sigaction(SIGUSR1, &action, 0), nanosleep(&nap, 0);
        }
        for (long i = 0; i < threads; i++) pthread_join(started[i], 0);
        done = 1;
        for (long i = 0; i < threads; i++) pthread_join(senders[i], 0);
        for (int i = 0; i < threads; i++) print(i + 1);
    } else {
        struct itimerval often = {{0, period}, {0, period}}, never = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &often, 0);
        if (nested) setitimer(ITIMER_PROF, &often, 0), setitimer(ITIMER_VIRTUAL, &often, 0);
        work();
        print(0);
        setitimer(ITIMER_REAL, &never, 0), setitimer(ITIMER_PROF, &never, 0), setitimer(ITIMER_VIRTUAL, &never, 0);
    }
    printf("elsewhere %d\n", elsewhere);
    return 0;
}
