/* Three threads make processes all the time, each in its own way, until the program is killed. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned sum;

static int work(int rounds) {
    volatile int sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += i % 7;
    return sum;
}

static void *forks(void *unused) {
    for (;;) {
        pid_t pid = fork();
        if (pid == 0) {
            if (fork() == 0)
                _exit(work(2000) & 1);
            _exit(work(1000) & 1);
        }
        waitpid(pid, 0, 0);
    }
    return unused;
}

static void *vforks(void *unused) {
    for (;;) {
        pid_t pid = vfork();
        if (pid == 0) {
            execl("/bin/true", "true", (char *)0);
            _exit(1);
        }
        waitpid(pid, 0, 0);
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    alarm(30);
    pthread_create(&threads[0], 0, forks, 0);
    pthread_create(&threads[1], 0, vforks, 0);
    for (unsigned state = 1;;) {
        for (int i = 0; i < 1000000; i++) {
            state = state * 1664525 + 1013904223;
            if (state >> 31)
                sum++;
        }
        if (fork() == 0)
            _exit(0);
        wait(0);
    }
}
