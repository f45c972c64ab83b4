/* Code in memory that is mapped twice, to be written and to be executed, as JIT compilers do; views that come later too. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* mov eax, N; ret */
static void put(volatile unsigned char *at, int n) {
    unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(code + 1, &n, sizeof n);
    for (int i = 0; i < 6; i++) at[i] = code[i];
}

int main(void) {
    int file = memfd_create("code", 0), sum = 0;
    if (ftruncate(file, 8192) != 0) return 1;
    unsigned char *writable = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 4096);
    int (*call)(void) = (int (*)(void))code;
    for (int n = 1; n <= 3; n++) {
        put(writable + 4096, n);
        sum = 10 * sum + call();
    }
    munmap(writable, 8192);
    sum = 10 * sum + call();
    writable = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 4096);
    put(writable, 4);
    sum = 10 * sum + call();
    mprotect(writable, 4096, PROT_READ);
    sum = 10 * sum + call();
    mprotect(writable, 4096, PROT_READ | PROT_WRITE);
    put(writable, 5);
    sum = 10 * sum + call();
    writable = mremap(writable, 0, 4096, MREMAP_MAYMOVE);
    put(writable, 6);
    sum = 10 * sum + call();
    int pipes[2];
    put(code == writable ? 0 : writable, 7);
    sum = 10 * sum + call();
    unsigned char eight[] = {0xb8, 8, 0, 0, 0, 0xc3};
    if (pipe(pipes) != 0 || write(pipes[1], eight, 6) != 6 || read(pipes[0], writable, 6) != 6) return 2;
    sum = 10 * sum + call();
    printf("%d\n", sum);
    return 0;
}
