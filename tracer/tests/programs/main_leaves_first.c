/* The first thread ends before the other, whose exit decides. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *outlive(void *unused) {
    (void)unused;
    usleep(50000);
    printf("the last thread\n");
    exit(9);
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, outlive, 0);
    pthread_exit(0);
}
