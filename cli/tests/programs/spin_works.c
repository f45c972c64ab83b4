/* Loops that look like waiting and are work: each thread runs every one of them, no turn of any may be left out. They
 * write, or nobody writes meanwhile where they look, or what they carry from turn to turn is used behind them. */
#include <pthread.h>
#include <string.h>

enum { THREADS = 2, LENGTH = 600 };

struct node {
    struct node *next;
    int key;
};

static struct node nodes[LENGTH];
static int table[LENGTH];
static char text[LENGTH + 1];
static volatile int flag, limit = LENGTH;
static volatile int late_flag;
static volatile int tide, ebb, has_seen_tides;
static volatile int lefts[THREADS] = {5, 3}, owns[THREADS] = {0, 1};
static long results[THREADS][8];
static long copied[THREADS][2];
static volatile long beats;
static long next_items[THREADS];
static int started;

/* Polls, and counts how often. */
static __attribute__((noinline)) long polls(void) {
    long polled = 0;
    while (!flag) polled++;
    return polled;
}

/* Walks along a list; only whether it found something comes back. */
static __attribute__((noinline)) int listed(struct node *node, int key) {
    for (; node; node = node->next)
        if (node->key == key) return 1;
    return 0;
}

/* Looks through a table. */
static __attribute__((noinline)) int holds(const int *all, int length, int key) {
    for (int i = 0; i < length; i++)
        if (all[i] == key) return 1;
    return 0;
}

/* Ends by data of its own: the limit is read again each turn, and nobody writes it. */
static __attribute__((noinline)) void delays(void) {
    for (int i = 0; i < limit; i++) { }
}

static __attribute__((noinline)) long length_of(const char *of) {
    long length = 0;
    while (of[length]) length++;
    return length;
}

/* Polls, and tells another how often: it adds to memory with a lock, though not to what it waits for. */
static __attribute__((noinline)) void beats_on(void) {
    for (int left = LENGTH; left && !late_flag; left--) __atomic_fetch_add(&beats, 1, __ATOMIC_SEQ_CST);
}

/* Has a `pause`, and writes. */
static __attribute__((noinline)) void pauses_and_writes(long *to) {
    for (int left = LENGTH; left && !late_flag; left--) {
        __builtin_ia32_pause();
        *(volatile long *)to += left;
    }
}

/* Takes items from a heap, each with a compare-and-swap that succeeds, since no other takes of it meanwhile; nothing is
 * made of them. */
static __attribute__((noinline)) void steals(long *next) {
    for (;;) {
        long item = __atomic_load_n(next, __ATOMIC_SEQ_CST);
        if (item >= 20L * LENGTH) return;
        __atomic_compare_exchange_n(next, &item, item + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
}

/* Waits for messages; works on each, and sums up in a register. */
static __attribute__((noinline)) long answers(void) {
    long sum = 0;
    int seen = 0;
    while (seen < 18) {
        int now = (int)(__atomic_load_n(&beats, __ATOMIC_SEQ_CST) >> 5);
        if (now > seen) {
            seen++;
            for (int i = 0; i < LENGTH; i++) sum = sum * 31 + (i ^ now);
        }
    }
    return sum;
}

/* Copies through a register that other code has for its frame pointer. */
void copies(long *to, const volatile long *from, const volatile int *until);
__asm__(".text\n.globl copies\n.type copies, @function\ncopies:\n"
        " push %rbp\n mov %rdi, %rbp\n mov $600, %ecx\n"
        "1: mov (%rsi), %rax\n mov %rax, 8(%rbp)\n cmpl $0, (%rdx)\n jne 2f\n dec %ecx\n jnz 1b\n"
        "2: pop %rbp\n ret\n.size copies, . - copies");

/* Counts up to a limit in memory, in a function with a frame of its own. */
static __attribute__((noinline)) int shrinks(int by, const volatile int *left) {
    int turns = 0;
    for (int i = 0; i < (*left & 7); i++) turns += by;
    return turns;
}

/* Is done a number of times, and what each time makes is gone: the branches by memory are inside. */
static __attribute__((noinline)) void repeats(const volatile int *left) {
    volatile int last;
    for (int i = 0; i < LENGTH; i++) last = shrinks(i, left) + (*left > 3);
    (void)last;
}

/* Is broken off by memory of the thread's own, which says so to the second thread only. */
static __attribute__((noinline)) void breaks(const volatile int *own) {
    for (int i = 0; i < LENGTH; i++)
        if (*own) break;
}

/* Looks the more rarely, the longer it waits, and counts how often. */
static __attribute__((noinline)) long rests(void) {
    long polled = 0;
    while (flag < 2) {
        polled++;
        if (polled > 16) __asm__ volatile("nop");
        if (polled > 64) __asm__ volatile("nop; nop");
    }
    return polled;
}

/* Goes either way by memory that another thread changes, and is done a number of times. */
static __attribute__((noinline)) void delays_in_two_ways(void) {
    for (int i = 0; i < 20 * LENGTH; i++) {
        if (tide) __asm__ volatile("nop");
        if (i & 64) __asm__ volatile("nop; nop");
    }
}

/* As that, but by memory that is changed only later. */
static __attribute__((noinline)) void delays_in_one_way(void) {
    for (int i = 0; i < 20 * LENGTH; i++) {
        if (ebb) __asm__ volatile("nop");
        if (i & 64) __asm__ volatile("nop; nop");
    }
}

static void *work(void *argument) {
    long *result = results[(long)argument];
    __atomic_fetch_add(&started, 1, __ATOMIC_SEQ_CST);
    result[0] = polls();
    result[6] = rests();
    result[1] = listed(nodes, LENGTH + 1);
    result[2] = holds(table, LENGTH, LENGTH + 1);
    result[3] = length_of(text);
    delays();
    delays_in_one_way();
    delays_in_two_ways();
    has_seen_tides = 1;
    beats_on();
    pauses_and_writes(&result[4]);
    steals(&next_items[(long)argument]);
    result[5] = answers();
    repeats(&lefts[(long)argument]);
    breaks(&owns[(long)argument]);
    copies(copied[(long)argument], &beats, &late_flag);
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < LENGTH; i++) {
        nodes[i] = (struct node){i + 1 < LENGTH ? &nodes[i + 1] : 0, i};
        table[i] = i;
    }
    memset(text, 'x', LENGTH);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, work, (void *)i);
    while (__atomic_load_n(&started, __ATOMIC_SEQ_CST) < THREADS) { }
    for (volatile int i = 0; i < 20000; i++) { }
    flag = 1;
    for (volatile int i = 0; i < 20000; i++) { }
    flag = 2;
    for (unsigned i = 0; !has_seen_tides; i++) tide = i >> 8 & 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    ebb = 1;
    return 0;
}
