/* Its function `WORK` lies where another build of it, with another name for it, has its own. With a program as argument it becomes that program;
 * with "forked" before it, a child does. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef WORK
#define WORK first_work
#endif

volatile int sum;

__attribute__((noinline, aligned(4096))) void WORK(int times) {
    for (int i = 0; i < times; i++) {
        sum += i;
    }
}

int main(int count, char **arguments) {
    WORK(100);
    if (count == 3 && strcmp(arguments[1], "forked") == 0) {
        pid_t child = fork();
        if (child != 0) {
            int status;
            waitpid(child, &status, 0);
            return WEXITSTATUS(status);
        }
    }
    if (count > 1) {
        execl(arguments[count - 1], arguments[count - 1], (char *)0);
        return 1;
    }
    return 7;
}
