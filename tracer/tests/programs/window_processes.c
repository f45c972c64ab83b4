/* A function that a process calls, and a child that it has forked before, and the program that it becomes: itself. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long sum;

__attribute__((noinline, noclone)) void step(int n) {
    for (int i = 0; i < n; i++)
        sum += i;
}

static void round_of(int n) {
    for (int i = 0; i < 3; i++) {
        step(n);
        for (int j = 0; j < 1000; j++)
            sum ^= j;
    }
}

int main(int argc, char **argv) {
    int again = argc > 1;
    pid_t child = fork();
    if (child == 0) {
        round_of(5);
        _exit(7);
    }
    int status;
    waitpid(child, &status, 0);
    round_of(6);
    printf("%d %ld\n", WEXITSTATUS(status), sum);
    fflush(stdout);
    if (!again)
        execl("/proc/self/exe", argv[0], "again", (char *)0);
    return 0;
}
