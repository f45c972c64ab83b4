/* Loops that look like waiting and are work: each thread runs every one of them, no turn of any may be left out. `memory` is written by nobody meanwhile, or what a loop
 * carries from turn to turn is used behind it. */
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
static long results[THREADS][8];
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

/* Ends by data of its own: the limit is read anew each turn, and nobody writes it. */
static __attribute__((noinline)) void delays(void) {
    for (int i = 0; i < limit; i++) { }
}

static __attribute__((noinline)) long length_of(const char *of) {
    long length = 0;
    while (of[length]) length++;
    return length;
}

static void *work(void *argument) {
    long *result = results[(long)argument];
    __atomic_fetch_add(&started, 1, __ATOMIC_SEQ_CST);
    result[0] = polls();
    result[1] = listed(nodes, LENGTH + 1);
    result[2] = holds(table, LENGTH, LENGTH + 1);
    result[3] = length_of(text);
    delays();
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
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    return 0;
}
