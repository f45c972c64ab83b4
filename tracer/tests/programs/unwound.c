/* A jump out of a routine that pthread_once runs, and coroutines inside of a thread. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static jmp_buf out;
static ucontext_t here, there;
static char stack[65536];

static void leave(void) { longjmp(out, 1); }

static void other(void) {
    printf("on the other stack\n");
    swapcontext(&there, &here);
}

static void *run(void *unused) {
    (void)unused;
    usleep(300000); /* until the first thread waits for this one: recordings are compared */
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    makecontext(&there, other, 0);
    swapcontext(&here, &there);
    printf("back\n");
    return 0;
}

int main(void) {
    pthread_t thread;
    if (setjmp(out) == 0) pthread_once(&once, leave);
    else printf("jumped\n");
    pthread_create(&thread, 0, run, 0);
    pthread_join(thread, 0);
    return 0;
}
