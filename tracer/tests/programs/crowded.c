/* Code that is made while the program runs, in the midst of 5 GiB of address space in which nothing else has room. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { FUNCTIONS = 500, SIZE = 64 };

int main(void) {
    unsigned char *code = (unsigned char *)0x310000000000;
    unsigned long side = 5ul << 29, length = FUNCTIONS * SIZE + 4095 & ~4095ul;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    mmap(code - side, 2 * side, PROT_NONE, flags, -1, 0);
    mprotect(code, length, PROT_READ | PROT_WRITE | PROT_EXEC);
    int sum = 0;
    for (int k = 0; k < FUNCTIONS; k++) {
        unsigned char bytes[] = {0xb8, 0, 0, 0, 0, 0xc3}; /* mov eax, k; ret */
        memcpy(bytes + 1, &k, sizeof k);
        memcpy(code + k * SIZE, bytes, sizeof bytes);
    }
    for (int k = 0; k < FUNCTIONS; k++) sum += ((int (*)(void))(code + k * SIZE))();
    printf("%d\n", sum);
    return 0;
}
