/* Dies of the signal given, 0: by a wild write. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    printf("before\n");
    fflush(stdout);
    int number = argc > 1 ? atoi(argv[1]) : 0;
    if (number) raise(number);
    *(volatile int *)8 = 1;
    return 0;
}
