/* Thousands of threads, each gone before the next. Made by clone itself, to keep the count of instructions small. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static char stack[1 << 16] __attribute__((aligned(16)));
static volatile int done;
static volatile int alive;

static int body(void *n) {
    done += *(int *)n;
    return 0;
}

int main(void) {
    int one = 1;
    for (int i = 0; i < 3000; i++) {
        alive = 1;
        int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
        if (clone(body, stack + sizeof stack, flags, &one, 0, 0, &alive) < 0) return 1;
        while (alive) syscall(SYS_futex, &alive, FUTEX_WAIT, 1, 0, 0, 0);
    }
    printf("%d\n", done);
    return 0;
}
