/* OpenMP tasks that make tasks and wait for them, in several ways. Each makes so many turns of a marked loop as it
   prints in the end. */
#include <omp.h>
#include <stdio.h>

#define TURN __asm__ volatile("nopl 0x12345678(%rax,%rax)")
#define PRAGMA(text) _Pragma(#text)
#define TASK(clauses) PRAGMA(omp task clauses)
enum { MOST = 1 << 10, DEPTH = 4 };

static unsigned turns[MOST];
static omp_lock_t lock;

static unsigned mix(unsigned i) { return i * 2654435761u >> 26; }

__attribute__((noinline)) static void work(unsigned task, unsigned n) {
    for (unsigned turn = 0; turn < n; turn++) TURN;
    turns[task] += n;
}

static void tree(unsigned task, int depth);

static void one(unsigned task, int depth) {
    work(task, 1 + mix(task));
    if (depth > 0) tree(task, depth - 1);
    work(task, mix(task + 7));
}

#if defined(FINAL)
#define CLAUSES final(depth < 2)
#elif defined(UNDEFERRED)
#define CLAUSES if (depth % 2)
#elif defined(UNTIED)
#define CLAUSES untied
#else
#define CLAUSES
#endif

static void tree(unsigned task, int depth) {
    unsigned left = 2 * task, right = left + 1;
#if defined(TASKLOOP)
#pragma omp taskloop num_tasks(3)
    for (unsigned i = 0; i < 3; i++) one(3 * task + i, depth - 1);
#elif defined(GROUP)
#pragma omp taskgroup
    {
        TASK()
        one(left, depth);
        TASK()
        one(right, depth);
    }
#elif defined(DEPEND)
    int x = 0;
#pragma omp task depend(out : x) shared(x)
    one(left, depth);
#pragma omp task depend(in : x) shared(x)
    one(right, depth);
#pragma omp taskwait
#elif defined(LOCKED)
    TASK()
    {
        omp_set_lock(&lock);
        work(left, 3);
        omp_unset_lock(&lock);
        one(left, depth);
    }
    TASK()
    {
        one(right, depth);
#pragma omp critical
        work(right, 5);
    }
#pragma omp taskwait
#else
    TASK(CLAUSES)
    one(left, depth);
    work(task, 3);
    TASK(CLAUSES)
    one(right, depth);
#pragma omp taskwait
#endif
}

int main(void) {
    omp_init_lock(&lock);
#pragma omp parallel
#pragma omp single
    {
#pragma omp task
        one(1, DEPTH);
    }
    for (int i = 0; i < MOST; i++)
        if (turns[i]) printf("%u\n", turns[i]);
}
