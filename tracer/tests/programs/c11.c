/* C11 threads. */
#include <stdio.h>
#include <threads.h>

static mtx_t mutex;
static int sum;

static int run(void *n) {
    mtx_lock(&mutex);
    sum += *(int *)n;
    mtx_unlock(&mutex);
    thrd_yield();
    return 0;
}

int main(void) {
    thrd_t thread;
    int one = 1;
    mtx_init(&mutex, mtx_plain);
    thrd_create(&thread, run, &one);
    thrd_join(thread, 0);
    printf("%d %p\n", sum, (void *)run);
    return 0;
}
