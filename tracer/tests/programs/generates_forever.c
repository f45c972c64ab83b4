/* Code that is made without end: each function differs from all before, in a page that is written over or in a new one. argv[1]: how many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ADDITIONS = 200 };

/* add eax, N, many times; ret */
static int (*put(unsigned char *at, int n))(void) {
    unsigned char *p = at;
    memcpy(p, "\x31\xc0", 2); /* xor eax, eax */
    p += 2;
    for (int i = 0; i < ADDITIONS; i++, p += 5) {
        int term = n + i;
        *p = 0x05;
        memcpy(p + 1, &term, sizeof term);
    }
    *p = 0xc3;
    return (int (*)(void))at;
}

static unsigned char *page(void) {
    return mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int argc, char **argv) {
    int functions = argc > 1 ? atoi(argv[1]) : 100;
    unsigned char *same = page();
    for (int n = 0; n < functions; n++) {
        unsigned char *where = n % 2 ? same : page();
        int expected = ADDITIONS * n + ADDITIONS * (ADDITIONS - 1) / 2;
        if (put(where, n)() != expected) {
            printf("function %d is wrong\n", n);
            return 1;
        }
        if (where != same) munmap(where, 4096);
    }
    printf("%d functions\n", functions);
    return 0;
}
