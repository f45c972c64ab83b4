/* What a program switches off for itself, and what is then left: calls from outside of some code, which it handles itself;
   time stamps; new code. Prints what it sees of that. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static volatile char selector;
static volatile int seen, number_seen, code_seen;
static volatile unsigned long address_seen;
static unsigned long base, length;

static void dispatched(int signal, siginfo_t *info, void *context) {
    (void)signal;
    selector = 0;
    seen++;
    number_seen = info->si_syscall;
    code_seen = info->si_code;
    address_seen = (unsigned long)info->si_call_addr;
    ucontext_t *at = context;
    if ((unsigned long)at->uc_mcontext.gregs[REG_RIP] != address_seen) code_seen = -1;
    at->uc_mcontext.gregs[REG_RAX] = 4243;
}

static int look(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (strstr(info->dlpi_name, "libc.so"))
        for (int i = 0; i < info->dlpi_phnum; i++)
            if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
                base = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
                length = info->dlpi_phdr[i].p_memsz;
            }
    return 0;
}

__attribute__((noinline)) static long call(long number, long first, unsigned long *behind) {
    long result;
    asm volatile("lea 1f(%%rip), %%rdx\n\tmov %%rdx, (%3)\n\txor %%edx, %%edx\n\tsyscall\n1:"
                 : "=a"(result) : "0"(number), "D"(first), "r"(behind), "S"(0L) : "rcx", "rdx", "r11", "memory");
    return result;
}

static void tell(const char *what, long result, unsigned long behind) {
    printf("%s: %ld, seen %d, number %d, code %d, address %s\n", what, result, seen, number_seen, code_seen,
           address_seen == behind ? "right" : "wrong");
    seen = number_seen = code_seen = 0;
}

static void *others(void *unused) {
    for (int i = 0; i < 200; i++) syscall(SYS_getppid);
    return unused;
}

static sigjmp_buf back;
static void faulted(int signal) { siglongjmp(back, signal); }

int main(void) {
    struct sigaction action = {.sa_sigaction = dispatched, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, 0);
    dl_iterate_phdr(look, 0);
    pthread_t thread;
    unsigned long behind = 0;
    printf("bad mode %d, bad range %d, bad byte %d\n", prctl(59, 7, 0, 0, 0) ? errno : 0,
           prctl(59, 1, 4096, -1ul, &selector) ? errno : 0, prctl(59, 1, 0, 0, 1ul << 63) ? errno : 0);
    if (prctl(59, 1, base, length, &selector)) perror("dispatch");
    pthread_create(&thread, 0, others, 0);
    selector = 1;
    int natively = getpid() > 0, early = seen;
    selector = 0;
    printf("of the range %d %d\n", natively, early);
    selector = 1;
    long own = call(SYS_getpid, 0, &behind);
    selector = 0;
    tell("getpid", own, behind);
    selector = 1;
    own = call(SYS_futex, (long)&early, &behind);
    selector = 0;
    tell("futex", own, behind);
    selector = 1;
    own = call(SYS_mmap, 0, &behind);
    selector = 0;
    tell("mmap", own, behind);
    pthread_join(thread, 0);
    if (prctl(59, 0, 0, 0, 0)) perror("off");
    selector = 1;
    own = call(SYS_getpid, 0, &behind) > 0;
    printf("off: %ld %d\n", own, seen);

    int state = 0;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    signal(SIGSEGV, faulted);
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    int fault = sigsetjmp(back, 1);
    if (!fault) asm volatile("rdtsc" ::: "rax", "rdx");
    prctl(PR_GET_TSC, &state);
    printf("time: fault %d, state %d\n", fault, state);
    prctl(PR_SET_TSC, PR_TSC_ENABLE);

    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *data = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int sum = 0;
    for (int turn = 0; turn < 4; turn++) {
        memcpy(code, (unsigned char[]){0xb8, turn, 0, 0, 0, 0xc3}, 6); /* mov eax, turn; ret */
        sum += ((int (*)(void))code)();
        if (turn == 1 && prctl(65, 1, 0, 0, 0)) puts("this kernel has no such switch");
    }
    int new = mmap(0, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0;
    int made = mprotect(data, 4096, PROT_READ | PROT_EXEC) ? errno : 0;
    printf("code: sum %d, new %d, made %d, state %d, off %d\n", sum, new, made, prctl(66, 0, 0, 0, 0),
           prctl(65, 0, 0, 0, 0) ? errno : 0);
    return 0;
}
