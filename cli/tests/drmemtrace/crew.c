// Three threads besides the first add up rows of different length, under a lock, between barriers. It needs no library,
// so its trace is small; its functions are called as those of POSIX, so that drmemtrace records them by name.
//     gcc -O1 -g -nostdlib -static -fno-stack-protector -fcf-protection=none crew.c -o crew
enum { THREADS = 4, ROUNDS = 3, STACK = 16384, FLAGS = 0x250f00 };

typedef struct { int taken; } Lock;
typedef struct { unsigned count; unsigned come; unsigned round; } Barrier;
typedef struct { void *(*routine)(void *); void *argument; int tid; } Start;

static char stacks[THREADS][STACK] __attribute__((aligned(64)));
static Start starts[THREADS];
static int made;
static Lock lock;
static Barrier barrier;
static long total, rows[THREADS * ROUNDS];

static long call(long number, long a, long b, long c, long d, long e) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

// The stack of the new thread has the routine and its argument on top.
long begin(long flags, void *stack, int *parent, int *child);
__asm__("begin:\n"
        "    mov %rcx, %r10\n"
        "    mov $56, %eax\n"
        "    syscall\n"
        "    test %rax, %rax\n"
        "    jz 1f\n"
        "    ret\n"
        "1:  xor %ebp, %ebp\n"
        "    pop %rax\n"
        "    pop %rdi\n"
        "    call *%rax\n"
        "    xor %edi, %edi\n"
        "    mov $60, %eax\n"
        "    syscall\n");

__attribute__((noinline)) int pthread_create(void **thread, void *attributes, void *(*routine)(void *), void *argument) {
    int number = made++;
    void **top = (void **)(stacks[number] + STACK) - 2;
    top[0] = (void *)routine;
    top[1] = argument;
    *thread = stacks[number] + STACK;
    starts[number].tid = 1;
    begin(FLAGS, top, 0, &starts[number].tid);
    return attributes != 0;
}

__attribute__((noinline)) int pthread_join(void *thread, void **result) {
    for (int number = 0; number < THREADS; number++)
        if (stacks[number] + STACK == (char *)thread)
            for (int tid; (tid = __atomic_load_n(&starts[number].tid, __ATOMIC_ACQUIRE)) != 0;)
                call(202, (long)&starts[number].tid, 0, tid, 0, 0);
    return result != 0;
}

__attribute__((noinline)) int pthread_mutex_lock(Lock *taken) {
    while (__atomic_exchange_n(&taken->taken, 1, __ATOMIC_ACQUIRE))
        call(202, (long)&taken->taken, 0, 1, 0, 0);
    return 0;
}

__attribute__((noinline)) int pthread_mutex_unlock(Lock *taken) {
    __atomic_store_n(&taken->taken, 0, __ATOMIC_RELEASE);
    call(202, (long)&taken->taken, 1, 1, 0, 0);
    return 0;
}

__attribute__((noinline)) int pthread_barrier_init(Barrier *meeting, void *attributes, unsigned count) {
    meeting->count = count;
    return attributes != 0;
}

__attribute__((noinline)) int pthread_barrier_wait(Barrier *meeting) {
    unsigned round = __atomic_load_n(&meeting->round, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&meeting->come, 1, __ATOMIC_ACQ_REL) == meeting->count) {
        meeting->come = 0;
        __atomic_store_n(&meeting->round, round + 1, __ATOMIC_RELEASE);
        call(202, (long)&meeting->round, 1, THREADS, 0, 0);
        return 1;
    }
    while (__atomic_load_n(&meeting->round, __ATOMIC_ACQUIRE) == round)
        call(202, (long)&meeting->round, 0, round, 0, 0);
    return 0;
}

static void *work(void *argument) {
    long thread = (long)argument;
    for (long round = 0; round < ROUNDS; round++) {
        long sum = 0;
        for (long i = 0; i <= 4 * thread + round; i++)
            sum += i & 1 ? i : -i;
        rows[THREADS * round + thread] = sum;
        pthread_mutex_lock(&lock);
        total += sum;
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&barrier);
    }
    return 0;
}

__attribute__((used)) static long run(void) {
    void *threads[THREADS];
    pthread_barrier_init(&barrier, 0, THREADS);
    for (long i = 1; i < THREADS; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    work(0);
    for (int i = 1; i < THREADS; i++)
        pthread_join(threads[i], 0);
    return call(231, 0, 0, 0, 0, 0);
}

__asm__(".globl _start\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    and $-16, %rsp\n"
        "    call run\n"
        "    hlt\n");
