/* A function that now and then ends with a jump to pthread_mutex_trylock, and else returns to the same place; also from
 * deeper frames, through frames that a longjmp passes, and with the lock's function entered in a signal handler. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once;
static jmp_buf out;
static volatile int busy;

__attribute__((noinline)) static int sometimes(int turn) {
    if (turn % 100 == 0) return pthread_mutex_trylock(&lock);
    return turn & 1;
}

__attribute__((noinline)) static int deeper(int depth, int turn) {
    volatile char room[160];
    room[0] = (char)depth;
    if (depth > 0) return deeper(depth - 1, turn) + room[0] - depth;
    return sometimes(turn);
}

static void jump(void) { longjmp(out, 1); }

/* With each distance between the frames of pthread_once and pthread_mutex_trylock: some share a place in tables. */
__attribute__((noinline)) static void at(int distance) {
    volatile char room[distance];
    room[0] = 0;
    if (pthread_mutex_trylock(&lock) == 0) pthread_mutex_unlock(&lock);
}

static void visit(void) {
    for (int distance = 16; distance <= 4352; distance += 16) at(distance);
}

static void handler(int number) {
    (void)number;
    busy += pthread_mutex_trylock(&lock) == 16;
}

int main(int count, char **arguments) {
    int turns = count > 1 ? atoi(arguments[1]) : 1000, sum = 0;
    signal(SIGUSR1, handler);
    for (volatile int i = 0; i < 20; i++) {
        once = (pthread_once_t)PTHREAD_ONCE_INIT;
        if (setjmp(out) == 0) pthread_once(&once, jump);
    }
    once = (pthread_once_t)PTHREAD_ONCE_INIT;
    pthread_once(&once, visit);
    for (int turn = 1; turn <= turns; turn++) {
        sum += sometimes(turn);
        if (turn % 100 == 50) sum += deeper(turn / 100 % 20, turn + 50);
        if (turn % 1000 == 500) raise(SIGUSR1);
        if (turn % 200 == 0) pthread_mutex_unlock(&lock);
    }
    printf("%d %d\n", sum, busy);
    return 0;
}
