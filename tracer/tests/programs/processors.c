/* Says on how many processors it may run: itself, a thread of it, a child, what it becomes, or where it has put itself. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *say(void *who) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    printf("%s: %d\n", (char *)who, CPU_COUNT(&set));
    return who;
}

int main(int argc, char **argv) {
    const char *how = argv[1];
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, 0, say, "a thread");
        pthread_join(thread, 0);
    } else if (!strcmp(how, "child")) {
        if (!fork()) return !say("a child");
        wait(0);
    } else if (!strcmp(how, "command")) {
        fflush(stdout);
        execl(argv[0], argv[0], "itself", (char *)0);
    } else if (!strcmp(how, "set")) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
        for (int i = 0; i < 1000; i++) getppid();
        say("on one");
        usleep(100000);
        say("still");
    } else {
        say("itself");
    }
    return 0;
}
