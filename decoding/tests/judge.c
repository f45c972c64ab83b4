/* Runs instructions whose memory operands two decoders see differently, and says what the processor does: "NAME writes" where memory
 * changed, "NAME reads N" where N bytes in front of a page that cannot be touched suffice, "NAME leaves" where memory that
 * cannot be written did no harm. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static unsigned char *page;

static void changed(const char *name) {
    for (int i = 0; i < 64; i++)
        if (page[1024 + i] != 0xAA) {
            printf("%s writes\n", name);
            return;
        }
}

#define WRITES(name, code) do { \
        memset(page + 1024, 0xAA, 64); \
        __asm__ volatile("xorps %%xmm0, %%xmm0; xor %%ecx, %%ecx; mov $0xAAAAAAAAAAAAAAAA, %%rax; " code \
                         : : "D"(page + 1024) : "memory", "rax", "rcx", "xmm0", "cc"); \
        changed(name); \
    } while (0)

#define READS(name, bytes, code) do { \
        __asm__ volatile(code : : "D"(page + 4096 - (bytes)) : "memory", "rax", "xmm0", "cc"); \
        printf("%s reads %d\n", name, bytes); \
    } while (0)

#define LEAVES(name, code) do { \
        mprotect(page, 4096, PROT_READ); \
        __asm__ volatile(code : : "D"(page + 1024) : "memory", "rax", "cc"); \
        mprotect(page, 4096, PROT_READ | PROT_WRITE); \
        printf("%s leaves\n", name); \
    } while (0)

int main(void) {
    page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page + 4096, 4096, PROT_NONE);
    WRITES("movups", "movups %%xmm0, (%%rdi)");
    WRITES("movq", "movq %%xmm0, (%%rdi)");
    WRITES("cmpxchg", "cmpxchg %%ecx, (%%rdi)");
    WRITES("fnstcw", "fnstcw (%%rdi)");
    WRITES("stmxcsr", "stmxcsr (%%rdi)");
    WRITES("setl", "test %%ecx, %%ecx; setl (%%rdi)");
    READS("comisd", 8, "comisd (%%rdi), %%xmm0");
    LEAVES("test", "test %%al, (%%rdi)");
    if (__builtin_cpu_supports("avx")) {
        WRITES("vmovdqu", "vmovdqu %%xmm0, (%%rdi)");
        WRITES("vmovdqa", "vmovdqa %%xmm0, (%%rdi)");
        WRITES("vmovq", "vmovq %%xmm0, (%%rdi)");
        WRITES("vmovd", "vmovd %%xmm0, (%%rdi)");
        WRITES("vstmxcsr", "vstmxcsr (%%rdi)");
    }
    return 0;
}
