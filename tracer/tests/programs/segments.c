/* Sets the bases of gs, by a call and by an instruction, reads through it, and asks for a shadow stack. */
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARCH_SET_GS 0x1001
#define ARCH_GET_GS 0x1004
#define ARCH_SHSTK_ENABLE 0x5001
#define FSGSBASE_ALLOWED 2

static unsigned long cells[4] = {11, 22, 33, 44};

static unsigned long through_gs(void) {
    unsigned long first, third;
    __asm__ volatile("mov %%gs:0, %0\n\tmov %%gs:16, %1" : "=r"(first), "=r"(third));
    return first * 100 + third;
}

int main(void) {
    unsigned long base = 0, sum = 0;
    syscall(SYS_arch_prctl, ARCH_SET_GS, cells);
    sum = through_gs();
    syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
    printf("%lu %d\n", sum, base == (unsigned long)cells);
    if (getauxval(AT_HWCAP2) & FSGSBASE_ALLOWED) {
        __asm__ volatile("wrgsbase %0" ::"r"(cells + 1));
        sum = through_gs();
        __asm__ volatile("rdgsbase %0" : "=r"(base));
        printf("%lu %d\n", sum, base == (unsigned long)(cells + 1));
    }
    fflush(stdout);
    /* A child has the base of its maker. */
    pid_t child = fork();
    if (child == 0)
        _exit(through_gs() % 100);
    int status;
    waitpid(child, &status, 0);
    printf("%d, %s shadow stack\n", WEXITSTATUS(status), syscall(SYS_arch_prctl, ARCH_SHSTK_ENABLE, 1) ? "no" : "a");
    return 0;
}
