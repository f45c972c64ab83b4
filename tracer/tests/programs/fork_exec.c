/* fork and exec, vfork and exec, a fork that runs on: all waited for. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int wait_for(pid_t pid) {
    int status;
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

int main(void) {
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/echo", "echo", "forked", (char *)0);
        _exit(1);
    }
    int sum = wait_for(pid);
    pid = vfork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", "echo vforked; exit 3", (char *)0);
        _exit(1);
    }
    sum += wait_for(pid);
    pid = fork();
    if (pid == 0) {
        printf("in the child\n");
        exit(4);
    }
    sum += wait_for(pid);
    printf("%d\n", sum);
    return sum;
}
