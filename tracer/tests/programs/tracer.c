/* Traces a child of its own, as a debugger does, which asks for it; with an argument, one that does not. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int attach(void) {
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(6);
    }
    long done = ptrace(PTRACE_ATTACH, child, 0, 0);
    printf("attach: %s\n", done ? strerror(errno) : "done");
    if (!done) waitpid(child, 0, 0);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
    return 0;
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) return attach();
    int status, stops = 0;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
            _exit(77);
        raise(SIGUSR1);
        _exit(5);
    }
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        stops++;
        ptrace(PTRACE_CONT, child, 0, 0);
    }
    printf("%d stops, status %d\n", stops, WEXITSTATUS(status));
    return 0;
}
