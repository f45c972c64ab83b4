/* Until it is ended, or twenty seconds long: threads that count by random branches, lock and sleep, short threads, and children that leave at once. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile long counts[4];

static void *count(void *n) {
    unsigned state = 17 + (unsigned)(long)n;
    for (;;) {
        for (int i = 0; i < 500; i++) {
            state = state * 1664525 + 1013904223;
            if (state >> 31) counts[0]++;
            else if (state >> 30 & 1) counts[1] += state & 7;
            else counts[2]--;
        }
        pthread_mutex_lock(&mutex);
        counts[3]++;
        pthread_mutex_unlock(&mutex);
        usleep(200);
    }
    return 0;
}

static void *leave(void *n) { return n; }

int main(void) {
    pthread_t thread;
    time_t end = time(0) + 20;
    for (long i = 0; i < 3; i++) pthread_create(&thread, 0, count, (void *)i);
    while (time(0) < end) {
        pthread_create(&thread, 0, leave, 0);
        pthread_join(thread, 0);
        pid_t child = fork();
        if (child == 0) _exit(3);
        waitpid(child, 0, 0);
        usleep(2000);
    }
    return 0;
}
