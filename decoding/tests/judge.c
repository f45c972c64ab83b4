/* Runs instructions of which two decoders say different things, and prints what the processor does with each: NAME VERDICT BYTES.
 *
 *   writes       memory in front of it changed
 *   touches N    N bytes in front of a page that cannot be touched suffice, and fewer do not
 *   leaves       memory that cannot be written did no harm
 *   ignores      neither did memory that cannot be touched
 *   sp N         the stack pointer changed by N
 *   runs         it is an instruction
 *   refused      it is none
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static unsigned char *page;
static sigjmp_buf back;
static volatile int last;
static const unsigned char *volatile from, *volatile to;

static void caught(int number) {
    last = number;
    siglongjmp(back, 1);
}

static void say(const char *name, const char *verdict, const unsigned char *from, const unsigned char *to) {
    printf("%s %s ", name, verdict);
    while (from < to)
        printf("%02x", *from++);
    printf("\n");
}

/* The instruction, with its own address and that behind it. */
#define RUN(before, code, after, address) \
    __asm__ volatile("lea 1f(%%rip), %%rax; mov %%rax, %0; lea 2f(%%rip), %%rax; mov %%rax, %1; " \
                     "mov $0xAAAAAAAAAAAAAAAA, %%rax; xor %%ecx, %%ecx; " \
                     "pxor %%xmm0, %%xmm0; mov %%rdi, %%rbx; " before "; 1: " code "; 2: " after \
                     : "=m"(from), "=m"(to) : "D"(address) : "memory", "rax", "rbx", "rcx", "rdx", "xmm0", "xmm1", "cc")

#define FAULT(before, code, after, address) ({ \
        last = 0; \
        if (sigsetjmp(back, 1) == 0) RUN(before, code, after, address); \
        last; })

#define WRITES(name, before, code, after) do { \
        memset(page + 1024, 0xAA, 64); \
        int changed = 0; \
        if (FAULT(before, code, after, page + 1024) == 0) \
            for (int i = 0; i < 64; i++) changed |= page[1024 + i] != 0xAA; \
        say(name, changed ? "writes" : "leaves", from, to); \
    } while (0)

/* `step` is what its address must be a multiple of. */
#define TOUCHES(name, bytes, step, before, code, after) do { \
        int fits = FAULT(before, code, after, page + 4096 - (bytes)) == 0; \
        int less = FAULT(before, code, after, page + 4096 - (bytes) + (step)) == 0; \
        say(name, fits && !less ? "touches " #bytes : "does otherwise", from, to); \
    } while (0)

#define PROTECTED(name, verdict, protection, code) do { \
        mprotect(page, 4096, protection); \
        int fault = FAULT("", code, "", page + 1024); \
        mprotect(page, 4096, PROT_READ | PROT_WRITE); \
        say(name, fault == 0 ? verdict : "faults", from, to); \
    } while (0)

#define SP(name, before, code) do { \
        long moved; \
        __asm__ volatile("lea 1f(%%rip), %%rax; mov %%rax, %0; lea 2f(%%rip), %%rax; mov %%rax, %1; sub $512, %%rsp; mov %%rbp, %%r9; " before "; mov %%rsp, %%r8; 1: " code \
                         "; 2: mov %%rsp, %2; sub %%r8, %2; lea 512(%%r8), %%rsp; add %3, %%rsp; mov %%r9, %%rbp" \
                         : "=m"(from), "=m"(to), "=&r"(moved) : "i"((before)[0] == 0 ? 0 : 8) : "memory", "rax", "r8", "r9", "cc"); \
        char verdict[32]; \
        snprintf(verdict, sizeof verdict, "sp %ld", moved); \
        say(name, verdict, from, to); \
    } while (0)

#define IS(name, code) do { \
        int fault = FAULT("", code, "fninit", page + 1024); \
        say(name, fault == SIGILL ? "refused" : "runs", from, to); \
    } while (0)

#define SETS(condition) WRITES("set" #condition, "test %%ecx, %%ecx", "set" #condition " (%%rdi)", "")

int main(void) {
    page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page + 4096, 4096, PROT_NONE);
    signal(SIGSEGV, caught);
    signal(SIGBUS, caught);
    signal(SIGILL, caught);
    signal(SIGTRAP, caught);
    WRITES("movd", "pxor %%mm0, %%mm0", "movd %%mm0, (%%rdi)", "emms");
    WRITES("movhpd", "", "movhpd %%xmm0, (%%rdi)", "");
    WRITES("movhps", "", "movhps %%xmm0, (%%rdi)", "");
    WRITES("movlpd", "", "movlpd %%xmm0, (%%rdi)", "");
    WRITES("movlps", "", "movlps %%xmm0, (%%rdi)", "");
    WRITES("movntdq", "", "movntdq %%xmm0, (%%rdi)", "");
    WRITES("movnti", "", "movnti %%ecx, (%%rdi)", "");
    WRITES("movntpd", "", "movntpd %%xmm0, (%%rdi)", "");
    WRITES("movntps", "", "movntps %%xmm0, (%%rdi)", "");
    WRITES("movntq", "pxor %%mm0, %%mm0", "movntq %%mm0, (%%rdi)", "emms");
    WRITES("movq", "", "movq %%xmm0, (%%rdi)", "");
    WRITES("movupd", "", "movupd %%xmm0, (%%rdi)", "");
    WRITES("movups", "", "movups %%xmm0, (%%rdi)", "");
    WRITES("extractps", "", "extractps $1, %%xmm0, (%%rdi)", "");
    WRITES("pextrb", "", "pextrb $1, %%xmm0, (%%rdi)", "");
    WRITES("pextrw", "", "pextrw $1, %%xmm0, (%%rdi)", "");
    WRITES("pextrd", "", "pextrd $1, %%xmm0, (%%rdi)", "");
    WRITES("pextrq", "", "pextrq $1, %%xmm0, (%%rdi)", "");
    WRITES("fist", "fld1", "fistl (%%rdi)", "fninit");
    WRITES("fistp", "fld1", "fistpl (%%rdi)", "fninit");
    WRITES("fisttp", "fld1", "fisttpll (%%rdi)", "fninit");
    WRITES("fst", "fld1", "fstl (%%rdi)", "fninit");
    WRITES("fstp", "fld1", "fstpl (%%rdi)", "fninit");
    WRITES("fnstcw", "", "fnstcw (%%rdi)", "");
    WRITES("stmxcsr", "", "stmxcsr (%%rdi)", "");
    WRITES("cmpxchg", "", "cmpxchg %%ecx, (%%rdi)", "");
    WRITES("cmpxchg8b", "mov %%eax, %%edx; push %%rbx; xor %%ebx, %%ebx", "cmpxchg8b (%%rdi)", "pop %%rbx");
    WRITES("cmpxchg16b", "mov %%rax, %%rdx; push %%rbx; xor %%ebx, %%ebx", "cmpxchg16b (%%rdi)", "pop %%rbx");
    WRITES("rol", "", "rolb $1, (%%rdi)", "");
    WRITES("ror", "", "rorb $1, (%%rdi)", "");
    WRITES("rcl", "clc", "rclb $1, (%%rdi)", "");
    WRITES("rcr", "clc", "rcrb $1, (%%rdi)", "");
    SETS(a);
    SETS(ae);
    SETS(b);
    SETS(be);
    SETS(e);
    SETS(g);
    SETS(ge);
    SETS(l);
    SETS(le);
    SETS(ne);
    SETS(no);
    SETS(np);
    SETS(ns);
    SETS(o);
    SETS(p);
    SETS(s);
    WRITES("maskmovdqu", "pcmpeqd %%xmm1, %%xmm1", "maskmovdqu %%xmm1, %%xmm0", "");
    TOUCHES("comisd", 8, 1, "", "comisd (%%rdi), %%xmm0", "");
    TOUCHES("ucomisd", 8, 1, "", "ucomisd (%%rdi), %%xmm0", "");
    TOUCHES("fnstenv", 14, 1, "", ".byte 0x66; fnstenv (%%rdi)", "fninit");
    TOUCHES("fnsave", 108, 1, "", "fnsave (%%rdi)", "fninit");
    TOUCHES("fnsave", 94, 1, "", ".byte 0x66; fnsave (%%rdi)", "fninit");
    TOUCHES("fxsave", 512, 16, "", "fxsave (%%rdi)", "");
    TOUCHES("push", 8, 1, "", ".byte 0x66, 0x48, 0xff, 0x37", "add $8, %%rsp");
    TOUCHES("cmovnp", 2, 1, "", ".byte 0x66, 0xf2, 0x0f, 0x4b, 0x07", "");
    TOUCHES("imul", 2, 1, "", ".byte 0x66, 0xf2, 0x0f, 0xaf, 0x07", "");
    TOUCHES("xlatb", 1, 1, "xor %%eax, %%eax", "xlatb", "");
    PROTECTED("test", "leaves", PROT_READ, "test %%al, (%%rdi)");
    PROTECTED("roundsd", "leaves", PROT_READ, "roundsd $1, (%%rdi), %%xmm0");
    PROTECTED("roundss", "leaves", PROT_READ, "roundss $1, (%%rdi), %%xmm0");
    PROTECTED("reservednop", "ignores", PROT_NONE, ".byte 0x0f, 0x1a, 0x07");
    PROTECTED("reservednop", "ignores", PROT_NONE, ".byte 0x66, 0x0f, 0x1b, 0x07");
    /* With ds it would be a read at 0. */
    int fault = FAULT("xor %%edi, %%edi", ".byte 0x64, 0x3e, 0x8a, 0x07", "", page);
    say("mov", fault == 0 ? "counts from fs" : "faults", from, to);
    SP("push", "", ".byte 0x0f, 0xa0");
    SP("push", "", ".byte 0x66, 0x48, 0x50");
    SP("pushfq", "", ".byte 0x66, 0x48, 0x9c");
    SP("enter", "", "enter $16, $0");
    SP("ret", "lea 2f(%%rip), %%rax; push %%rax", ".byte 0x66, 0x48, 0xc2, 0x08, 0x00");
    IS("fcom", ".byte 0xdc, 0xd1");
    IS("fcomp", ".byte 0xde, 0xd1");
    IS("fstp", ".byte 0xdf, 0xda");
    IS("fxch", ".byte 0xdf, 0xcc");
    IS("lfence", ".byte 0x0f, 0xae, 0xe9");
    IS("mfence", ".byte 0x0f, 0xae, 0xf3");
    IS("sfence", ".byte 0x0f, 0xae, 0xf9");
    IS("prefetchw", ".byte 0x0f, 0x0d, 0x1f");
    IS("reservednop", ".byte 0x0f, 0x1c, 0x0f");
    IS("bsr", ".byte 0xf2, 0x0f, 0xbd, 0xc1");
    IS("movsxd", ".byte 0xf3, 0x63, 0xc1");
    IS("pause", ".byte 0x66, 0xf2, 0xf3, 0x90");
    IS("add", ".byte 0xf0, 0x03, 0x07");
    IS("psubw", ".byte 0xf2, 0x4d, 0x0f, 0xf9, 0x07");
    IS("sha1msg1", ".byte 0xf3, 0x0f, 0x38, 0xc9, 0xc1");
    IS("fxsave", ".byte 0xf2, 0x0f, 0xae, 0x07");
    IS("vaddps", ".byte 0x66, 0xc5, 0xf8, 0x58, 0xc1");
    IS("mov", ".byte 0x0f, 0x20, 0xc8");
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) {
        IS("vpinsrw", ".byte 0xc4, 0xe1, 0xb1, 0xc4, 0xc0, 0x01");
        IS("vphsubd", ".byte 0xc4, 0xe2, 0xf9, 0x06, 0xc1");
        IS("vgatherqps", ".byte 0xc4, 0xe2, 0x7d, 0x93, 0x04, 0xc7");
        PROTECTED("vroundsd", "leaves", PROT_READ, "vroundsd $1, (%%rdi), %%xmm0, %%xmm0");
        PROTECTED("vroundss", "leaves", PROT_READ, "vroundss $1, (%%rdi), %%xmm0, %%xmm0");
        PROTECTED("vcvtpd2ps", "leaves", PROT_READ, "vcvtpd2psx (%%rdi), %%xmm0");
        PROTECTED("vbroadcasti128", "leaves", PROT_READ, "vbroadcasti128 (%%rdi), %%ymm0");
        TOUCHES("vcomisd", 8, 1, "", "vcomisd (%%rdi), %%xmm0", "");
        TOUCHES("vucomisd", 8, 1, "", "vucomisd (%%rdi), %%xmm0", "");
        WRITES("vcvtps2ph", "", "vcvtps2ph $0, %%xmm0, (%%rdi)", "");
        WRITES("vextractf128", "", "vextractf128 $0, %%ymm0, (%%rdi)", "");
        WRITES("vextracti128", "", "vextracti128 $0, %%ymm0, (%%rdi)", "");
        WRITES("vextractps", "", "vextractps $1, %%xmm0, (%%rdi)", "");
        WRITES("vmaskmovpd", "vpcmpeqd %%xmm1, %%xmm1, %%xmm1", "vmaskmovpd %%xmm0, %%xmm1, (%%rdi)", "");
        WRITES("vmaskmovps", "vpcmpeqd %%xmm1, %%xmm1, %%xmm1", "vmaskmovps %%xmm0, %%xmm1, (%%rdi)", "");
        WRITES("vpmaskmovd", "vpcmpeqd %%xmm1, %%xmm1, %%xmm1", "vpmaskmovd %%xmm0, %%xmm1, (%%rdi)", "");
        WRITES("vpmaskmovq", "vpcmpeqd %%xmm1, %%xmm1, %%xmm1", "vpmaskmovq %%xmm0, %%xmm1, (%%rdi)", "");
        WRITES("vmovapd", "", "vmovapd %%xmm0, (%%rdi)", "");
        WRITES("vmovaps", "", "vmovaps %%xmm0, (%%rdi)", "");
        WRITES("vmovd", "", "vmovd %%xmm0, (%%rdi)", "");
        WRITES("vmovdqa", "", "vmovdqa %%xmm0, (%%rdi)", "");
        WRITES("vmovdqu", "", "vmovdqu %%ymm0, (%%rdi)", "");
        WRITES("vmovhpd", "", "vmovhpd %%xmm0, (%%rdi)", "");
        WRITES("vmovhps", "", "vmovhps %%xmm0, (%%rdi)", "");
        WRITES("vmovlpd", "", "vmovlpd %%xmm0, (%%rdi)", "");
        WRITES("vmovlps", "", "vmovlps %%xmm0, (%%rdi)", "");
        WRITES("vmovntdq", "", "vmovntdq %%xmm0, (%%rdi)", "");
        WRITES("vmovntpd", "", "vmovntpd %%xmm0, (%%rdi)", "");
        WRITES("vmovntps", "", "vmovntps %%xmm0, (%%rdi)", "");
        WRITES("vmovq", "", "vmovq %%xmm0, (%%rdi)", "");
        WRITES("vmovsd", "", "vmovsd %%xmm0, (%%rdi)", "");
        WRITES("vmovss", "", "vmovss %%xmm0, (%%rdi)", "");
        WRITES("vmovupd", "", "vmovupd %%xmm0, (%%rdi)", "");
        WRITES("vmovups", "", "vmovups %%xmm0, (%%rdi)", "");
        WRITES("vpextrb", "", "vpextrb $1, %%xmm0, (%%rdi)", "");
        WRITES("vpextrw", "", "vpextrw $1, %%xmm0, (%%rdi)", "");
        WRITES("vpextrd", "", "vpextrd $1, %%xmm0, (%%rdi)", "");
        WRITES("vpextrq", "", "vpextrq $1, %%xmm0, (%%rdi)", "");
        WRITES("vstmxcsr", "", "vstmxcsr (%%rdi)", "");
    }
    return 0;
}
