// A thread that does not end before the one that joins it waits in the kernel: so each join is one wait at a futex, no
// more and no less.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static char path[64];

// Whether the first thread is in the system call `futex`, as the kernel tells.
static int waits(void) {
    char text[32] = {0};
    int file = open(path, O_RDONLY);
    if (file < 0 || read(file, text, sizeof text - 1) < 0) exit(1);
    close(file);
    return atoi(text) == SYS_futex;
}

static void *body(void *unused) {
    while (!waits())
        ;
    return unused;
}

int main(void) {
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)getpid());
    for (int i = 0; i < 8; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, body, 0);
        pthread_join(thread, 0);
    }
    return 0;
}
