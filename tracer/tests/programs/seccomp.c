/* Restricts its system calls, by a filter or ("strict") to next to none, and runs code that has not run before. "ask": only asks what there is.
   "threads": while there is another thread. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fresh(int rounds) {
    volatile int sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += i % 7;
    return sum;
}

static void *other(void *unused) {
    pause();
    return unused;
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    pthread_t thread;
    if (strcmp(mode, "ask") == 0) {
        int asked = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0, 0, 0) == -1 && errno == EFAULT;
        return 10 * asked + (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 0) == -1 && errno == EFAULT);
    }
    if (strcmp(mode, "threads") == 0)
        pthread_create(&thread, 0, other, 0);
    if (strcmp(mode, "strict") == 0) {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        write(1, "strict\n", 7);
        syscall(SYS_exit, fresh(100) % 50);
    }
    /* Kills whoever maps memory, makes memory files or protects pages. */
#define KILLED(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILLED(SYS_mmap), KILLED(SYS_memfd_create), KILLED(SYS_mprotect), KILLED(SYS_rt_sigaction),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter))
        return 99;
    write(1, "filtered\n", 9);
    _exit(fresh(100) % 50);
}
