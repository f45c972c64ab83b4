/* The frame of group.h for a GPU's compiler: the same kernels as device code, entered through `run_kernel`, where a
 * group of threads is a block. Nothing is run there: scripts/cfm-gpu reads what the compilers make of it. The group's
 * buffer is a global array as on the CPU, so that accesses have flat or global addresses. */
#ifndef WORKLOADS_DEVICE_H
#define WORKLOADS_DEVICE_H

#ifndef BLOCK
#define BLOCK 16
#endif

#ifndef MAX_THREADS
#define MAX_THREADS 1024
#endif

enum { MAX_GROUPS = MAX_THREADS / BLOCK };

#define NULL ((void *)0)
/* Data that the kernel reads: what lies in the module alone would be known to be zero, since nothing prepares it here. */
#define DATA
#define AS_WRITTEN inline __attribute__((always_inline))
#define AS_LOOP _Pragma("clang loop unroll(disable) vectorize(disable) interleave(disable)")

int abs(int);
#define memset __builtin_memset
#define memcpy __builtin_memcpy
#define fail(...) __builtin_trap()

static inline unsigned scrambled(unsigned number) {
    number = (number ^ number >> 16) * 0x45d9f3bu;
    number = (number ^ number >> 16) * 0x45d9f3bu;
    return number ^ number >> 16;
}

/* What waits for other threads is not copied into two arms of a branch: C, unlike CUDA, has to be told. */
#define CONVERGENT __attribute__((convergent))

#if defined(__NVPTX__)
#define ENTRY __attribute__((nvptx_kernel))
#define BLOCK_NUMBER __nvvm_read_ptx_sreg_ctaid_x()
#define THREAD_NUMBER __nvvm_read_ptx_sreg_tid_x()
CONVERGENT static inline void meet(long group) {
    (void)group;
    __nvvm_bar_sync(0);
}
#else
#define ENTRY __attribute__((amdgpu_kernel))
#define BLOCK_NUMBER __builtin_amdgcn_workgroup_id_x()
#define THREAD_NUMBER __builtin_amdgcn_workitem_id_x()
CONVERGENT static inline void meet(long group) {
    (void)group;
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
    __builtin_amdgcn_s_barrier();
}
#endif

/* Makes a number that starts as the same in all lanes one that each lane has for itself, to the assembler too. */
unsigned nothing[BLOCK];
#define PER_LANE(variable) variable += nothing[THREAD_NUMBER]

static void prepare(long group);
static void kernel(long group, unsigned thread);
static unsigned long check(long group);

#define RUN_GROUPS                                                                                                     \
    ENTRY void run_kernel(void) {                                                                            \
        kernel(BLOCK_NUMBER, THREAD_NUMBER);                                                                           \
    }

#endif
