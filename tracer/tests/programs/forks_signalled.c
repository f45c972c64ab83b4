/* A thread that makes processes while another sends it signals at which nothing is done: the kernel
   begins calls again that they have interrupted, though no handler runs. argv: how many processes. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int done;

static void *sending(void *to) {
    unsigned pause = 1;
    while (!done) {
        syscall(SYS_tgkill, getpid(), (int)(long)to, SIGURG);
        pause = pause * 1664525 + 1013904223;
        for (volatile unsigned i = 0; i < pause >> 20; i++)
            ;
    }
    return 0;
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? atoi(argv[1]) : 1, sum = 0;
    pthread_t sender;
    pthread_create(&sender, 0, sending, (void *)syscall(SYS_gettid));
    for (int i = 0; i < processes; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(i % 100);
        int status = 0;
        while (waitpid(pid, &status, 0) < 0)
            ;
        sum += WEXITSTATUS(status);
    }
    done = 1;
    pthread_join(sender, 0);
    printf("%d processes, %d\n", processes, sum);
    return 0;
}
