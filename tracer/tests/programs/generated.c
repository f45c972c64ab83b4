/* Code that is written at run time, run, overwritten in place, run again; and once more after mprotect. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* mov eax, N; ret */
static void put(unsigned char *at, int n) {
    unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(code + 1, &n, sizeof n);
    memcpy(at, code, sizeof code);
}

int main(void) {
    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int (*call)(void) = (int (*)(void))code;
    for (int n = 1; n <= 2; n++) {
        put(code, n);
        printf("%d\n", call());
    }
    mprotect(code, 4096, PROT_READ | PROT_WRITE);
    put(code, 3);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    printf("%d\n", call());
    mprotect(code, 4096, PROT_READ | PROT_WRITE);
    put(code, 4);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    printf("%d\n", call());
    return 0;
}
