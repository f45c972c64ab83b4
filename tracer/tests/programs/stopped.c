/* Stops itself with all its threads; a child process wakes it. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int end;

static void *sleeper(void *unused) {
    (void)unused;
    while (!end) usleep(1000);
    return 0;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, sleeper, 0);
    pid_t me = getpid(), child = fork();
    if (child == 0) {
        char path[64], line[256];
        snprintf(path, sizeof path, "/proc/%d/stat", me);
        for (char state = 0; state != 'T' && state != 't'; usleep(10000)) {
            FILE *file = fopen(path, "r");
            if (fgets(line, sizeof line, file)) sscanf(line, "%*d (%*[^)]) %c", &state);
            fclose(file);
        }
        usleep(100000);
        kill(me, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    waitpid(child, 0, 0);
    end = 1;
    pthread_join(thread, 0);
    printf("woken\n");
    return 0;
}
