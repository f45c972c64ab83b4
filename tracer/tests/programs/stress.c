/* Threads that compute, write code for themselves and for others, run it, and fork, while signals reach all of them
   that run code from the page that is written. argv: microseconds between two
   signals to a thread in hundreds (0: none), rounds.
   Except for the handlers, each thread runs the same instructions each time, until it calls `done`: threads wait for each
   other in reads from pipes only. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COMPUTING = 2, THREADS = COMPUTING + 2, HANDLED = 0, HANDED = 1, FORKED = 2, OWN = 3 };
static unsigned char *code;
static int period, rounds;
static int gates[2], orders[2], answers[2];
static volatile long handled;
static volatile double scale = 1;

/* A function of its own cache line: mov eax, value; ret. */
static void put(int place, int value) {
    volatile unsigned char *at = code + 64 * place;
    at[1] = value & 127;
    at[2] = value >> 7 & 127;
    at[3] = at[4] = 0;
    at[5] = 0xc3;
    at[0] = 0xb8;
}

static int call(int place) { return ((int (*)(void))(code + 64 * place))(); }

static void serialize(void) {
    int a = 0, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d) : : "memory");
}

static void handle(int signal, siginfo_t *info, void *context) {
    (void)info, (void)context;
    handled += call(HANDLED) + signal;
    scale = scale * 1.0000001 + 0.5;
    __asm__ volatile("xorps %%xmm0, %%xmm0; xorps %%xmm15, %%xmm15; xor %%r11, %%r11" : : : "xmm0", "xmm15", "r11");
}

/* Signals to this thread, from now on. */
static timer_t begin(void) {
    timer_t timer = 0;
    int number = 0;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    struct itimerspec often = {{0, period * 1000l}, {0, period * 1000l}};
    syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &number);
    syscall(SYS_timer_settime, number, 0, &often, 0);
    timer = (timer_t)(long)number;
    return timer;
}

static void end(timer_t timer) { syscall(SYS_timer_delete, (int)(long)timer); }

__attribute__((noinline)) void done(void) { __asm__ volatile(""); }

static int take(int from) {
    unsigned char byte = 0;
    return read(from, &byte, 1) == 1 ? byte : 1000;
}

static void give(int to, int value) {
    unsigned char byte = (unsigned char)value;
    if (write(to, &byte, 1) != 1) abort();
}

static unsigned twice(unsigned x) { return x * 2; }
static unsigned mixed(unsigned x) { return x * 1664525 + 1013904223; }
static unsigned halved(unsigned x) { return x / 2 + 7; }
static unsigned (*const volatile steps[])(unsigned) = {twice, mixed, halved};

__attribute__((noinline)) static unsigned descend(unsigned depth, unsigned x) {
    if (depth == 0) return x;
    x = steps[x % 3](x);
    return descend(depth - 1, x) + (x >> 5);
}

static unsigned compute(unsigned x, int turns) {
    double y = x;
    for (int i = 0; i < turns; i++) {
        x = descend(x % 7, x + i);
        y = y * 1.0001 + (x & 15);
        if (x % 3 == 0) x ^= (unsigned)y;
    }
    return x;
}

static void *computing(void *argument) {
    long id = (long)argument;
    take(gates[0]);
    timer_t timer = begin();
    unsigned x = (unsigned)id;
    for (int i = 0; i < rounds; i++) {
        x = compute(x, 20);
        put(OWN + id, i);
        x += call(OWN + id);
        if (i % 8 == 0) x += syscall(SYS_getppid) == 0;
    }
    end(timer);
    done();
    return (void *)(unsigned long)x;
}

static void *writing(void *argument) {
    take(gates[0]);
    timer_t timer = begin();
    long sum = 0;
    for (int i = 0; i < rounds; i++) {
        put(HANDED, i);
        give(orders[1], i & 63);
        sum += take(answers[0]);
    }
    end(timer);
    done();
    return (void *)(sum + (long)argument);
}

static void *running(void *argument) {
    take(gates[0]);
    timer_t timer = begin();
    long sum = 0;
    for (int i = 0; i < rounds; i++) {
        int order = take(orders[0]);
        serialize();
        int value = call(HANDED);
        sum += value == ((i & 127) | (i >> 7 & 127) << 8) && order == (i & 63);
        give(answers[1], value & 63);
    }
    end(timer);
    done();
    return (void *)(sum + (long)argument);
}

static int child(int number) {
    timer_t timer = begin();
    unsigned x = compute(number, 40);
    put(FORKED, number);
    x += call(FORKED);
    x = compute(x, 20);
    put(FORKED, number + 1);
    x += call(FORKED);
    end(timer);
    return x & 127;
}

static int forks(void) {
    int sum = 0;
    for (int i = 0; i < 2 + rounds / 50; i++) {
        pid_t pid = fork();
        if (pid == 0) _exit(child(i));
        int status = 0;
        if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) abort();
        sum = sum * 3 + WEXITSTATUS(status);
        put(FORKED, i + 100);
        sum += call(FORKED);
    }
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    period = 100 * (argv[1][0] - '0'), rounds = atoi(argv[2]);
    code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    put(HANDLED, 5);
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR1, &action, 0);
    sigaction(SIGALRM, &action, 0);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGALRM);
    if (pipe(gates) || pipe(orders) || pipe(answers)) return 2;
    pthread_t threads[THREADS];
    for (long i = 0; i < COMPUTING; i++) pthread_create(&threads[i], 0, computing, (void *)i);
    pthread_create(&threads[COMPUTING], 0, writing, 0);
    pthread_create(&threads[COMPUTING + 1], 0, running, 0);
    struct itimerval often = {{0, period}, {0, period}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, 0);
    timer_t timer = begin();
    for (int i = 0; i < THREADS; i++) give(gates[1], i);
    int sum = forks();
    end(timer);
    setitimer(ITIMER_REAL, &never, 0);
    done();
    printf("forks %d\n", sum);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        printf("thread %d: %lx\n", i, (unsigned long)result);
    }
    return 0;
}
