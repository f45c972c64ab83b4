/* Becomes another program: from its first thread, or with an argument from another one while a third waits. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *replace(void *unused) {
    (void)unused;
    execl("/bin/echo", "echo", "replaced", (char *)0);
    return 0;
}

static void *wait_here(void *unused) {
    (void)unused;
    pause();
    return 0;
}

int main(int argc, char **argv) {
    (void)argv;
    pthread_t thread;
    execl("/no/such/program", "none", (char *)0);
    if (argc == 1) replace(0);
    pthread_create(&thread, 0, wait_here, 0);
    pthread_create(&thread, 0, replace, 0);
    pause();
    return 1;
}
