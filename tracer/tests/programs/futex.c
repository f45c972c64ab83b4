/* Waits at a futex for a millisecond, then until a time that is past, and once in vain: the value is another. */
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int word = 5;

int main(void) {
    struct timespec millisecond = {0, 1000000};
    for (int value = 5; value >= 4; value--) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &millisecond, 0, 0);
    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 5, &(struct timespec){0, 0}, 0, 1);
    printf("%p\n", (void *)&word);
    return 0;
}
