/* Small loops, each of one kind of dependence between iterations, judged by scripts/check-dependences.

   KERNEL name: verdict; kinds; order; gcc
   - verdict: `would`, `after` a change, or `carries`; kinds: some that `replay --dependences` must name, or -;
   - order: whether the output is the `same` or `differs` where the iterations run in another order; -: no such judge;
   - gcc: whether its vectoriser takes the loop (`yes`) or names a dependence (`no`); -: no such judge. */
#include <stdio.h>
#include <stdlib.h>

#define N 256
#ifdef PERMUTED
#define AT(k) (((k) * 77 + 13) & (N - 1))
#else
#define AT(k) (k)
#endif

static int a[2 * N + 16], b[2 * N + 16], c[2 * N + 16], order[N], m[N + 1][8], cells[16], scratch[4];
static struct { int x, y; } pairs[N];
static struct node { struct node *next; int value; } nodes[N];
static unsigned long words[N], others[N];
static long result;
static int shared;

__attribute__((noinline)) static int *hide(int *p) {
    __asm__ volatile("" : "+r"(p));
    return p;
}
__attribute__((noipa)) static void put(int value) { shared = value; }

static void kernel(void) {
#if defined(ELEMENTWISE)
    /* KERNEL ELEMENTWISE: would; -; same; yes */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        a[i] = b[i] + c[i];
    }
#elif defined(EVEN_AND_ODD)
    /* KERNEL EVEN_AND_ODD: would; -; same; - */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        a[2 * i] = a[2 * i + 1] * 3;
    }
#elif defined(SCATTER_APART)
    /* KERNEL SCATTER_APART: would; -; same; - */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        a[order[i]] = b[i];
    }
#elif defined(GATHER)
    /* KERNEL GATHER: would; -; same; - */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        a[i] = b[order[i]] + 1;
    }
#elif defined(HALVES)
    /* KERNEL HALVES: would; -; same; yes */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        a[i + N] = a[i] + 1;
    }
#elif defined(FIELDS)
    /* KERNEL FIELDS: would; -; same; - */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        pairs[i].x = pairs[i].y * 2;
    }
#elif defined(OWN_ROW)
    /* KERNEL OWN_ROW: would; -; same; - */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        for (int j = 1; j < 8; j++) m[i][j] = m[i][j - 1] * 3 + j;
    }
#elif defined(GUARDED_BY_VALUE)
    /* KERNEL GUARDED_BY_VALUE: would; -; same; - */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        if (b[i] & 1) a[i] = c[i];
    }
#elif defined(ANTI)
    /* KERNEL ANTI: after; overwritten; differs; yes */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        a[i] = a[i + 1] + b[i];
    }
#elif defined(ANTI_FAR)
    /* KERNEL ANTI_FAR: after; overwritten; differs; yes */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        a[i] = a[i + 9] * b[i];
    }
#elif defined(TRUE_NEXT)
    /* KERNEL TRUE_NEXT: carries; carried; differs; no */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        a[i + 1] = (a[i] ^ b[i]) * 3;
    }
#elif defined(TRUE_FAR)
    /* KERNEL TRUE_FAR: carries; carried; differs; - */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        a[i + 5] = a[i] * 3 + b[i];
    }
#elif defined(ROW_ABOVE)
    /* KERNEL ROW_ABOVE: carries; carried; differs; - */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        for (int j = 0; j < 8; j++) m[i + 1][j] = m[i][7 - j] * 5 + j;
    }
#elif defined(ALIASED)
    /* KERNEL ALIASED: carries; carried; differs; - */
    int *from = hide(a), *to = hide(a + 2);
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        to[i] = from[i] * 7;
    }
#elif defined(SCATTER_AND_GATHER)
    /* KERNEL SCATTER_AND_GATHER: carries; carried; differs; no */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        a[order[i] & 63] = a[order[N - 1 - i] & 63] * 3 + i;
    }
#elif defined(LIST)
    /* KERNEL LIST: carries; carried; -; - */
    for (struct node *n = nodes; n; n = n->next) /* LOOP */
        n->value = n->value * 3 + 1;
#elif defined(SCALAR_CHAIN)
    /* KERNEL SCALAR_CHAIN: carries; carried; differs; no */
    unsigned x = 1;
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        x = (x >> 3 ^ x << 5) + b[i];
    }
    result = x;
#elif defined(OUTPUT_COLLISION)
    /* KERNEL OUTPUT_COLLISION: after; private; differs; - */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        cells[b[i] & 7] = i;
    }
#elif defined(OUTPUT_OVERLAP)
    /* KERNEL OUTPUT_OVERLAP: after; private; differs; - */
    int *next = hide(a + 1);
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        a[i] = b[i];
        next[i] = c[i];
    }
#elif defined(SCRATCH_ARRAY)
    /* KERNEL SCRATCH_ARRAY: after; private; same; - */
    int *own = hide(scratch);
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        for (int j = 0; j < 4; j++) own[j] = b[i] * j;
        a[i] = own[b[i] & 3] - own[c[i] & 3];
    }
#elif defined(SCRATCH_SCALAR)
    /* KERNEL SCRATCH_SCALAR: after; private; same; - */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        put(b[i] * 2);
        a[i] = shared + c[i];
    }
#elif defined(SUM)
    /* KERNEL SUM: after; reduction (sum); same; yes */
    unsigned sum = 0;
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        sum += b[i];
    }
    result = sum;
#elif defined(PRODUCT)
    /* KERNEL PRODUCT: after; reduction (product); same; yes */
    unsigned product = 1;
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        product *= b[i] | 1;
    }
    result = product;
#elif defined(PARITY)
    /* KERNEL PARITY: after; reduction (xor); same; yes */
    int bits = 0;
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        bits ^= b[i];
    }
    result = bits;
#elif defined(LARGEST)
    /* KERNEL LARGEST: after; reduction; same; yes */
    int most = 0;
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        most = b[i] > most ? b[i] : most;
    }
    result = most;
#elif defined(LONG_DOUBLE_SUM)
    /* KERNEL LONG_DOUBLE_SUM: after; reduction (sum); same; - */
    long double total = 0;
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        total += b[i];
    }
    result = (long)total;
#elif defined(LONG_DOUBLE_CHAIN)
    /* KERNEL LONG_DOUBLE_CHAIN: carries; carried; differs; - */
    long double x = 1;
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        x = b[i] / (x + 1);
    }
    result = (long)(x * 1000000);
#elif defined(LONG_DOUBLE_EACH)
    /* KERNEL LONG_DOUBLE_EACH: would; -; same; - */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        a[i] = (int)((long double)b[i] / 7 + c[i]);
    }
#elif defined(HISTOGRAM)
    /* KERNEL HISTOGRAM: after; scattered reduction (sum); same; no */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        cells[b[i] & 15]++;
    }
#elif defined(RUNNING_SUM)
    /* KERNEL RUNNING_SUM: carries; partial results (sum); differs; - */
    int sum = 0;
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        sum += b[i];
        a[i] = sum;
    }
#elif defined(PLACES)
    /* KERNEL PLACES: carries; partial results (sum); differs; - */
    int used = 0;
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        if (b[i] & 1) a[used++] = b[i];
    }
    result = used;
#elif defined(CARRY_FLAG)
    /* KERNEL CARRY_FLAG: carries; carried; -; - */
    unsigned long *to = words, *from = others, left = N;
    __asm__ volatile("clc\n1: mov (%1), %%rax\n adc %%rax, (%0)\n lea 8(%0), %0\n lea 8(%1), %1\n dec %2\n jnz 1b" /* LOOP */
                     : "+r"(to), "+r"(from), "+r"(left) : : "rax", "cc", "memory");
#elif defined(SEARCH)
    /* KERNEL SEARCH: after; early exit; -; - */
    for (int k = 0; k < N; k++) { /* LOOP */
        int i = AT(k);
        if (b[i] == 77777) break;
        a[i] = b[i] * 2;
    }
#elif defined(SHARED_BY_THREADS)
    /* KERNEL SHARED_BY_THREADS: after; private; -; - */
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < N; i++) { /* LOOP */
        put(b[i] * 2);
        a[i] = shared + c[i];
    }
#elif defined(ATOMIC_SUM)
    /* KERNEL ATOMIC_SUM: would; atomic; -; - */
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < N; i++) { /* LOOP */
#pragma omp atomic
        shared += b[i];
    }
#elif defined(CRITICAL_LIST)
    /* KERNEL CRITICAL_LIST: carries; partial results (sum); -; - */
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < N; i++) { /* LOOP */
        int own = b[i] * c[i];
        if (b[i] & 1) {
#pragma omp critical
            a[shared++] = own;
        }
    }
#elif defined(CRITICAL_BEST)
    /* KERNEL CRITICAL_BEST: would; guarded; -; - */
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < N; i++) { /* LOOP */
        int own = b[i] ^ c[i];
#pragma omp critical
        if (own > result) {
            result = own;
            shared = i;
        }
    }
    a[0] = shared;
#elif defined(OWN_SUMS)
    /* KERNEL OWN_SUMS: after; reduction (sum); -; - */
    int sum = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
    for (int i = 0; i < N; i++) { /* LOOP */
        a[i] = b[i];
        sum += b[i];
    }
    result = sum;
#elif defined(RACE)
    /* KERNEL RACE: carries; carried; -; - */
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < N; i++) /* LOOP */
        a[i + 1] = a[i] * 3 + b[i];
#else
#error "name a kernel"
#endif
}

int main(void) {
    for (int i = 0; i < 2 * N + 16; i++) {
        a[i] = i * 7 + 3;
        b[i] = (i * 2654435761u >> 20) + 1;
        c[i] = i * i;
    }
    for (int i = 0; i < N; i++) {
        order[i] = (i * 45 + 7) & (N - 1);
        pairs[i].y = i * 3;
        nodes[i] = (struct node){i + 1 < N ? &nodes[i + 1] : NULL, i};
        words[i] = others[i] = ~0ul - i;
        for (int j = 0; j < 8; j++) m[i][j] = i + j;
    }
    b[200] = 77777;
    kernel();
    unsigned long sum = result;
    for (int i = 0; i < 2 * N + 16; i++) sum = sum * 31 + a[i];
    for (int i = 0; i < 16; i++) sum = sum * 31 + cells[i];
    for (int i = 0; i <= N; i++) sum = sum * 31 + m[i][7];
    for (int i = 0; i < N; i++) sum = sum * 31 + pairs[i].x + nodes[i].value + words[i];
    printf("%lx\n", sum);
    return 0;
}
