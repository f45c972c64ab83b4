/* Traces a child of its own, as a debugger does. */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
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
