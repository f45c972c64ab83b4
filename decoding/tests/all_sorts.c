/* Instructions that compilers write seldom: of the x87, of vectors (AVX, AVX2, FMA, F16C, AVX-512 where the processor has them), for
 * bits and strings, and with prefixes that mean little or nothing. Its trace has them all, for two decoders to agree on. */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static unsigned char bytes[4096] __attribute__((aligned(64)));

static void x87(void) {
    static double value = 1.5;
    static float single = 2.5f;
    static int32_t integer = 7;
    static int64_t wide;
    static long double extended;
    __asm__ volatile("fninit; fldl %0; flds %1; fildl %2; fld1; fldz; fldpi; fxch; faddp; fmulp; fsubrp; fdivrp; fstpt %4; fistpll %3; fninit"
                     : "+m"(value), "+m"(single), "+m"(integer), "=m"(wide), "=m"(extended));
    __asm__ volatile("fldt %0; fldl %1; fcomi; fucomi; fcmovb %%st(1), %%st; fsin; fcos; fsqrt; fabs; fchs; frndint; fscale; fprem; fptan; fpatan;"
                     "fstpl %1; fldl2e; f2xm1; fyl2x; fninit" : "+m"(extended), "+m"(value));
    __asm__ volatile("fld1; fbstp %0; fbld %0; fisttpll %1; fnstcw 16+%0; fldcw 16+%0; fnstenv 32+%0; fldenv 32+%0; fnsave 64+%0; frstor 64+%0;"
                     "fnstsw %%ax; fninit; fwait; fnclex" : "+m"(bytes), "+m"(wide) : : "ax");
    __asm__ volatile("fxsave 512+%0; fxrstor 512+%0; stmxcsr %1; ldmxcsr %1" : "+m"(bytes), "+m"(integer));
}

static void strings(void) {
    long count = 100;
    void *from = bytes, *to = bytes + 1024;
    __asm__ volatile("cld; rep movsb" : "+c"(count), "+S"(from), "+D"(to) : : "memory");
    count = 20;
    __asm__ volatile("rep stosq" : "+c"(count), "+D"(to) : "a"(0x0102030405060708L) : "memory");
    count = 50, from = bytes, to = bytes + 1024;
    __asm__ volatile("repe cmpsb" : "+c"(count), "+S"(from), "+D"(to) : : "memory", "cc");
    count = 50, to = bytes;
    __asm__ volatile("repne scasw; lodsl" : "+c"(count), "+D"(to), "+S"(from) : "a"(77L) : "cc");
}

static void bits(void) {
    uint64_t a = 0x123456789abcdef, b = 40, c;
    __asm__ volatile("bsf %1, %0; bsr %1, %0; bt $3, %1; bts $5, %0; btr $6, %0; btc $7, %0; btl %%ecx, (%2); popcnt %1, %0; bswap %0; shld $3, %1, %0;"
                     "shrd %%cl, %1, %0; rcl $1, %0; rcr $1, %0; xadd %0, (%2); cmpxchg %1, (%2); lock xaddl %k0, (%2); lock btsq $2, (%2)"
                     : "=&r"(c), "+r"(a) : "r"(bytes), "c"(b) : "memory", "cc", "rax");
    __asm__ volatile("cmpxchg8b (%0); lock cmpxchg16b (%0)" : : "r"(bytes) : "memory", "cc", "rax", "rdx");
    __asm__ volatile("movbe (%1), %0; movbe %0, 8(%1); crc32b (%1), %k0; lahf; sahf; cbw; cwde; cdqe; cwd; cdq; cqo; xlatb; mov %%rbx, %%r8; cpuid; mov %%r8, %%rbx"
                     : "=&r"(c) : "b"(bytes) : "memory", "cc", "rax", "rcx", "rdx", "r8");
    if (__builtin_cpu_supports("bmi2"))
        __asm__ volatile("andn %1, %0, %0; bextr %1, (%2), %0; blsi %1, %0; blsmsk %1, %0; blsr %1, %0; bzhi %1, (%2), %0; pdep (%2), %1, %0;"
                         "pext (%2), %1, %0; mulx (%2), %0, %1; rorx $3, (%2), %0; sarx %1, (%2), %0; shlx %1, (%2), %0; shrx %1, (%2), %0; tzcnt (%2), %0;"
                         "lzcnt (%2), %0" : "+r"(a), "+r"(b) : "r"(bytes) : "cc", "rdx");
}

/* Prefixes without meaning, or of rare use. */
static void prefixes(void) {
    __asm__ volatile(".byte 0x2e; mov (%0), %%eax; .byte 0x3e; mov (%0), %%eax; .byte 0x26; mov (%0), %%eax; addr32 lea (%k0), %%eax; data16 nop;"
                     ".byte 0x66,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0; .byte 0xf3,0x70,0; xacquire lock incl (%0); xrelease lock decl (%0);"
                     "mov %%fs:0, %%rax; .byte 0x64,0x3e,0x48,0x8b,0x04,0x25,0,0,0,0; pushw $7; popw %%ax; .byte 0x66,0x48,0x50; pop %%rax;"
                     ".byte 0x48,0x90; pause; rep nop; endbr64; .byte 0x66,0xf2,0x0f,0xaf,0x07; .byte 0xf2,0x0f,0xbd,0xc1; prefetcht0 (%0); prefetchw (%0);"
                     "clflush (%0); lfence; sfence; mfence; movnti %%eax, (%0); .byte 0x0f,0x1a,0x07; .byte 0xdc,0xd1; rdtsc"
                     : : "D"(bytes) : "memory", "rax", "rcx", "rdx", "cc");
    __asm__ volatile("push %%rbp; mov %%rsp, %%rbp; enter $32, $0; leave; pushfq; popfq; push %%fs; pop %%rax; lea -128(%%rsp), %%rsp; lea 128(%%rsp), %%rsp;"
                     "xchg %%rsp, %%rbp; xchg %%rsp, %%rbp; pop %%rbp" : : : "memory", "rax", "cc");
}

static void sse(void) {
    __asm__ volatile("movups (%0), %%xmm0; movaps %%xmm0, (%0); movhps %%xmm0, (%0); movlpd %%xmm0, (%0); movntps %%xmm0, (%0); maskmovdqu %%xmm1, %%xmm0;"
                     "pshufb (%0), %%xmm0; pextrw $1, %%xmm0, (%0); pinsrd $1, (%0), %%xmm0; extractps $1, %%xmm0, (%0); roundsd $1, (%0), %%xmm0; dpps $3, (%0), %%xmm0;"
                     "ucomisd (%0), %%xmm0; comiss (%0), %%xmm0; cvtsi2sd (%0), %%xmm0; cvttsd2si (%0), %%rax; pcmpistri $4, (%0), %%xmm0; pclmulqdq $0, (%0), %%xmm0;"
                     "aesenc (%0), %%xmm0; movmskps %%xmm0, %%eax; movq2dq %%mm0, %%xmm0; movntq %%mm0, (%0); pmovzxbw (%0), %%xmm0; mpsadbw $1, (%0), %%xmm0; emms"
                     : : "D"(bytes) : "memory", "rax", "rcx", "cc", "xmm0", "xmm1");
}

__attribute__((target("avx2,fma,f16c"))) static void vectors(void) {
    __asm__ volatile("vmovdqu (%0), %%ymm0; vpcmpeqd %%ymm1, %%ymm1, %%ymm1; vpxor %%ymm2, %%ymm2, %%ymm2; vgatherdps %%ymm1, (%0,%%ymm2,4), %%ymm3;"
                     "vpcmpeqd %%xmm1, %%xmm1, %%xmm1; vpgatherqq %%xmm1, (%0,%%xmm2,1), %%xmm3; vpmaskmovd %%ymm0, %%ymm1, (%0); vmaskmovpd (%0), %%ymm1, %%ymm0;"
                     "vbroadcasti128 (%0), %%ymm0; vextracti128 $1, %%ymm0, (%0); vinserti128 $1, (%0), %%ymm0, %%ymm0; vpermq $3, (%0), %%ymm0; vperm2i128 $1, (%0), %%ymm0, %%ymm0;"
                     "vfmadd231pd (%0), %%ymm0, %%ymm1; vcvtps2ph $0, %%ymm0, (%0); vcvtph2ps (%0), %%ymm0; vroundss $1, (%0), %%xmm0, %%xmm0; vmovhpd %%xmm0, (%0);"
                     "vmovntdqa (%0), %%ymm0; vmovntps %%ymm0, (%0); vpsllvd (%0), %%ymm0, %%ymm0; vpblendvb %%ymm1, (%0), %%ymm0, %%ymm0; vcmpltps (%0), %%ymm0, %%ymm0;"
                     "vtestps (%0), %%ymm0; vucomisd (%0), %%xmm0; vstmxcsr (%0); vldmxcsr (%0); vcvtpd2psy (%0), %%xmm0; vpinsrw $1, (%0), %%xmm0, %%xmm0; vzeroupper; vzeroall"
                     : : "D"(bytes) : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3");
    __m256d sum = _mm256_setzero_pd();
    for (int i = 0; i < 512; i += 4)
        sum = _mm256_fmadd_pd(_mm256_loadu_pd((double *)bytes + i), sum, sum);
    _mm256_storeu_pd((double *)bytes, sum);
}

__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq"))) static void wide_vectors(void) {
    __asm__ volatile("vmovdqu64 (%0), %%zmm16; kxnorw %%k1, %%k1, %%k1; kmovw %%k1, (%0); kmovq (%0), %%k2; vaddps (%0), %%zmm16, %%zmm16%{%%k1%};"
                     "vaddpd (%0)%{1to8%}, %%zmm16, %%zmm16%{%%k2%}%{z%}; vmovups %%zmm16, (%0)%{%%k1%}; vpcompressd %%zmm16, (%0)%{%%k1%}; vpternlogd $3, (%0), %%zmm16, %%zmm16;"
                     "vpxord %%zmm17, %%zmm17, %%zmm17; kxnorw %%k1, %%k1, %%k1; vpgatherdd (%0,%%zmm17,4), %%zmm18%{%%k1%}; kxnorw %%k1, %%k1, %%k1;"
                     "vpscatterdd %%zmm16, (%0,%%zmm17,4)%{%%k1%}; vpmovdb %%zmm16, (%0); vcmpltps (%0), %%zmm16, %%k3; vcvtps2pd (%0), %%zmm16; vextracti64x4 $1, %%zmm16, (%0);"
                     "vrndscalesd $1, (%0), %%xmm16, %%xmm16; vmovdqu8 %%ymm16, (%0)%{%%k1%}; vzeroupper" : : "D"(bytes) : "memory");
}

int main(void) {
    memset(bytes, 3, sizeof bytes);
    x87();
    strings();
    bits();
    prefixes();
    memset(bytes, 0, sizeof bytes);
    sse();
    memset(bytes, 0, sizeof bytes);
    int avx = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    if (avx)
        vectors();
    int avx512 = __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    if (avx512)
        wide_vectors();
    printf("AVX2 %s, AVX-512 %s\n", avx ? "ran" : "is not there", avx512 ? "ran" : "is not there");
    return 0;
}
