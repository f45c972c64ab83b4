/* Functions and markers at which a recording may begin and end, one thread: with signals, a jump out of a function, recursion, locks. */
#include <lockstep.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

#define OWN __attribute__((noinline, noclone))

static volatile long sum;
static jmp_buf way_out;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

OWN void enter(int n) { sum += n; }
OWN void leave(int n) { sum ^= n; }
OWN void never(int n) { sum -= n; }

OWN long work(int n) {
    for (int i = 0; i < n; i++)
        sum += i * sum % 7;
    return sum;
}

OWN long deep(int n) {
    if (n == 0)
        return work(3);
    return deep(n - 1) + sum;
}

OWN void jumps(int n) {
    work(n);
    if (n > 5)
        longjmp(way_out, 1);
    sum++;
}

static void handler(int number) {
    (void)number;
    work(4);
    LOCKSTEP_BEGIN;
    work(2);
    LOCKSTEP_END;
    leave(2);
    work(3);
    enter(1);
}

int main(int argc, char **argv) {
    (void)argv;
    signal(SIGUSR1, handler);
    for (int i = 0; i < 3; i++) {
        work(20);
        pthread_mutex_lock(&mutex);
        enter(i);
        work(10 + i);
        pthread_mutex_unlock(&mutex);
        if (i == 1)
            raise(SIGUSR1);
        pthread_mutex_lock(&mutex);
        leave(i);
        pthread_mutex_unlock(&mutex);
        deep(4);
        LOCKSTEP_BEGIN;
        work(5);
        LOCKSTEP_BEGIN;
        work(6);
        LOCKSTEP_END;
        LOCKSTEP_END;
        LOCKSTEP_END;
        for (int n = 4; n < 8; n++)
            if (!setjmp(way_out))
                jumps(n);
    }
    if (argc > 100)
        never(1);
    printf("%ld\n", sum);
    return 0;
}
