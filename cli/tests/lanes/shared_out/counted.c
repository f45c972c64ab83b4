// As in a bucket sort: each thread counts its share of 4,096 keys by bucket, adds up in loops of its own what the
// threads before it and behind it have counted, and puts its keys where they belong. Right: 8,192 lanes, one for each
// key of the two loops that are shared out, which all do the same.
#include <omp.h>
#include <stdio.h>

enum { KEYS = 4096, BUCKETS = 64, THREADS = 16 };
static int keys[KEYS], sorted[KEYS], counts[THREADS][BUCKETS], totals[BUCKETS], *of_thread[THREADS];

int main(void) {
    for (int i = 0; i < KEYS; i++) keys[i] = i * 37 % BUCKETS;
    for (int i = 0; i < THREADS; i++) of_thread[i] = counts[i];
#pragma omp parallel
    {
        int me = omp_get_thread_num(), all = omp_get_num_threads(), at[BUCKETS], rest = 0;
        int *own = of_thread[me];
        _Pragma("omp for")
        for (int i = 0; i < KEYS; i++) own[keys[i]]++;
        for (int b = 0, sum = 0; b < BUCKETS; b++) {
            at[b] = sum;
            for (int k = 0; k < me; k++) at[b] += of_thread[k][b];
            for (int k = 0; k < me; k++) sum += of_thread[k][b];
            for (int k = me; k < all; k++) sum += of_thread[k][b];
            for (int k = me; k > 0; k--) rest += of_thread[k][b] & 1;
        }
        if (me < all - 1)
            for (int b = 0; b < BUCKETS; b++)
                for (int k = me + 1; k < all; k++) rest += of_thread[k][b];
        _Pragma("omp for")
        for (int i = 0; i < KEYS; i++) sorted[at[keys[i]]++] = keys[i];
#pragma omp atomic
        totals[0] += rest;
    }
    for (int i = 1; i < KEYS; i++)
        if (sorted[i - 1] > sorted[i]) return 1;
    printf("%d\n", totals[0]);
}
