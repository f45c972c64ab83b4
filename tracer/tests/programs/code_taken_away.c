/* Code that is there no longer, or is another, behind a call that does not write to it; argv[1] says which. What is left is called, and a fault is
   caught. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

typedef int (*function)(void);
static sigjmp_buf back;
static const unsigned char FIRST[6] = {0xb8, 50, 0, 0, 0, 0xc3}, SECOND[6] = {0xb8, 51, 0, 0, 0, 0xc3};
enum { EXECUTABLE = PROT_READ | PROT_EXEC, ALL = EXECUTABLE | PROT_WRITE, PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS };

static void caught(int signal) { siglongjmp(back, signal); }

static void show(const unsigned char *code) {
    int signal = sigsetjmp(back, 1);
    if (signal)
        printf(" signal %d", signal);
    else
        printf(" %d", ((int (*)(long, long, long))code)(0, 0, 0));
}

static int file_with(const unsigned char *code) {
    int file = memfd_create("code", 0);
    for (int page = 0; page < 2; page++) pwrite(file, code, 6, page * 4096);
    ftruncate(file, 8192);
    return file;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    struct sigaction action = {.sa_handler = caught};
    for (int signal = 1; signal < 32; signal++)
        if (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL) sigaction(signal, &action, 0);
    int is = 0, file;
    unsigned char *code;
#define HOW(name) else if (strcmp(how, name) == 0)
    if (0) {}
    HOW("discarded") {
        code = mmap(0, 4096, ALL, PRIVATE, -1, 0);
        memcpy(code, FIRST, 6), show(code);
        is = madvise(code, 4096, MADV_DONTNEED), show(code);
    }
    HOW("discarded-copy") {
        code = mmap(0, 4096, ALL, MAP_PRIVATE, file_with(FIRST), 0);
        show(code), memcpy(code, SECOND, 6), show(code);
        is = madvise(code, 4096, MADV_DONTNEED), show(code);
    }
    HOW("discarded-fixed") { /* cannot be written any more */
        code = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_with(FIRST), 0);
        memcpy(code, SECOND, 6), mprotect(code, 4096, EXECUTABLE), show(code);
        is = madvise(code, 4096, MADV_DONTNEED), show(code);
    }
    HOW("removed") {
        file = file_with(FIRST);
        code = mmap(0, 4096, EXECUTABLE, MAP_SHARED, file, 0);
        unsigned char *view = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        show(code);
        is = madvise(view, 4096, MADV_REMOVE), show(code);
        memcpy(view, SECOND, 6), show(code);
    }
    HOW("freed") { /* and written again, before the kernel takes it */
        code = mmap(0, 4096, ALL, PRIVATE, -1, 0);
        memcpy(code, FIRST, 6), show(code);
        is = madvise(code, 4096, MADV_FREE);
        memcpy(code, SECOND, 6), show(code);
    }
    HOW("freed-only") {
        code = mmap(0, 4096, ALL, PRIVATE, -1, 0);
        memcpy(code, FIRST, 6), show(code);
        is = madvise(code, 4096, MADV_FREE), show(code);
    }
    HOW("advised") { /* by the call for any process */
        code = mmap(0, 4096, ALL, PRIVATE, -1, 0);
        memcpy(code, FIRST, 6), show(code);
        struct iovec piece = {code, 4096};
        is = (int)syscall(SYS_process_madvise, syscall(SYS_pidfd_open, getpid(), 0), &piece, 1, MADV_DONTNEED, 0);
        show(code);
    }
    HOW("moved-in-file") {
        file = file_with(FIRST);
        pwrite(file, SECOND, 6, 4096);
        code = mmap(0, 4096, ALL, MAP_SHARED, file, 0);
        show(code);
        is = (int)syscall(SYS_remap_file_pages, code, 4096, 0, 1, 0), show(code);
    }
    HOW("written-to-file") {
        file = file_with(FIRST);
        code = mmap(0, 4096, EXECUTABLE, MAP_SHARED, file, 0);
        show(code), is = pwrite(file, SECOND, 6, 0) != 6, show(code);
        struct iovec piece = {(void *)FIRST, 6};
        is += pwritev(file, &piece, 1, 0) != 6, show(code);
    }
    HOW("written-to-file-private") {
        file = file_with(FIRST);
        code = mmap(0, 4096, ALL, MAP_PRIVATE, file, 0);
        show(code), is = pwrite(file, SECOND, 6, 0) != 6, show(code);
        memcpy(code, FIRST, 6), is += pwrite(file, "\xc3", 1, 0) != 1, show(code);
    }
    HOW("copied-to-file") {
        file = file_with(FIRST);
        int from = file_with(SECOND);
        code = mmap(0, 4096, EXECUTABLE, MAP_SHARED, file, 0);
        off_t start = 0, to = 0;
        show(code), is = syscall(SYS_copy_file_range, from, &start, file, &to, 6, 0) != 6, show(code);
        is += ftruncate(file, 0), show(code);
    }
    HOW("written-by-call") { /* into its own memory */
        code = mmap(0, 4096, ALL, PRIVATE, -1, 0);
        memcpy(code, FIRST, 6), show(code);
        struct iovec here = {(void *)SECOND, 6}, there = {code, 6};
        is = process_vm_writev(getpid(), &here, 1, &there, 1, 0) != 6, show(code);
    }
    HOW("not-executable") {
        code = mmap(0, 4096, ALL, PRIVATE, -1, 0);
        memcpy(code, FIRST, 6), show(code);
        is = mprotect(code, 4096, PROT_READ | PROT_WRITE), show(code);
        memcpy(code, SECOND, 6), is += mprotect(code, 4096, EXECUTABLE), show(code);
    }
    HOW("not-executable-view") {
        file = file_with(FIRST);
        code = mmap(0, 4096, EXECUTABLE, MAP_SHARED, file, 0);
        unsigned char *view = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        show(code), show(view), memcpy(view, SECOND, 6), show(code);
    }
    HOW("runs-on-into-nothing") {
        code = mmap(0, 8192, ALL, PRIVATE, -1, 0);
        munmap(code + 4096, 4096);
        code[4090] = 0xb8, show(code + 4090);
        memcpy(code, FIRST, 6), show(code), show(code + 4090);
    }
    HOW("runs-on-into-data") { /* an instruction of which the second half may not be executed */
        code = mmap(0, 8192, ALL, PRIVATE, -1, 0);
        memcpy(code + 4093, FIRST, 6), show(code + 4093);
        is = mprotect(code + 4096, 4096, PROT_READ | PROT_WRITE), show(code + 4093);
    }
    HOW("zeros") {
        code = mmap(0, 4096, ALL, PRIVATE, -1, 0);
        memcpy(code, FIRST, 6), show(code), memset(code, 0, 4096), show(code);
    }
    HOW("unmapped") {
        code = mmap(0, 4096, ALL, PRIVATE, -1, 0);
        memcpy(code, FIRST, 6), show(code), is = munmap(code, 4096), show(code);
        code = mmap(code, 4096, ALL, PRIVATE | MAP_FIXED, -1, 0);
        memcpy(code, SECOND, 6), show(code);
    }
    printf(", %d\n", is);
    return 0;
}
