/* Timers interrupt a read that goes on (SA_RESTART), a read that does not, a sleep, and sigsuspend. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static int ends[2];
static volatile sig_atomic_t count;

static void tick(int number) {
    if (number != SIGALRM) _exit(2);
    if (++count != 2) return;
    /* No third one, however long it takes until the timer is set again. */
    setitimer(ITIMER_REAL, &(struct itimerval){0}, 0);
    if (write(ends[1], "x", 1) != 1) _exit(1);
}

static void timer(int flags, int milliseconds, int repeat) {
    struct sigaction action = {.sa_handler = tick, .sa_flags = flags};
    struct itimerval when = {{0, repeat * 1000}, {0, milliseconds * 1000}};
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &when, 0);
}

int main(void) {
    char c = 0;
    if (pipe(ends)) return 1;
    timer(SA_RESTART, 200, 200);
    ssize_t n = read(ends[0], &c, 1);
    timer(0, 0, 0);
    printf("read %zd %c after %d\n", n, c, (int)count);
    timer(0, 300, 900); /* again and again: on a busy machine one may come before the read */
    n = read(ends[0], &c, 1);
    timer(0, 0, 0);
    printf("read %zd %s\n", n, strerror(errno));
    timer(0, 200, 0);
    printf("left to sleep: %s\n", sleep(20) > 15 ? "most" : "little");
    sigset_t all_but;
    sigfillset(&all_but);
    sigprocmask(SIG_BLOCK, &all_but, 0);
    sigdelset(&all_but, SIGALRM);
    timer(0, 200, 0);
    sigsuspend(&all_but);
    printf("suspended until %d\n", (int)count);
    return 0;
}
