/* A parallel radix sort in the manner of SPLASH's RADIX: digits of log2(RADIX) bits, the lowest first; in each pass
 *
 *     1. every thread counts the digits of its own run of keys
 *     2. every thread takes a run of digits and turns their counts, thread after thread, into offsets within the digit
 *     3. every thread adds up the digits of the runs before its own, which gives where its digits begin
 *     4. every thread moves its keys to their places, in order, so that a pass never swaps equal digits
 *
 * with a barrier after each step. Main starts p - 1 threads and calls the worker function itself, as thread 0.
 *
 *     radix [-p THREADS] [-n KEYS] [-r RADIX]
 *
 * Checks: the keys come out in order, and they are the keys that went in (their sum, and a hash that is blind to
 * order). */
#include "crew.h"

static const char usage[] = "radix [-p THREADS] [-n KEYS] [-r RADIX]\n"
                            "  -p THREADS  threads, 1 to 1024 (default 4)\n"
                            "  -n KEYS     keys, 1 to 1000000000 (default 16384)\n"
                            "  -r RADIX    a power of two, 2 to 65536 (default 256)\n";

/* Keys have this many bits. */
enum { KEY_BITS = 24 };

static long thread_count = 4;
static long key_count = 16384;
static long radix = 256;

static int digit_bits;            /* log2(radix) */
static unsigned *keys;            /* what a pass reads: the input, and in the end the result */
static unsigned *moved;           /* what a pass writes */
static long *counts;              /* of digit d among the keys of thread t: counts[t * radix + d]; then offsets */
static long *digit_starts;        /* where the first key of digit d goes */
static long *run_totals;          /* keys whose digits lie in thread t's run of digits */
static pthread_barrier_t step_end;

static void wait_for_all(void) {
    pthread_barrier_wait(&step_end);
}

/* The first element of thread `id`'s share of `total` elements. */
static long share(long id, long total) {
    return total / thread_count * id + total % thread_count * id / thread_count;
}

static AS_WRITTEN void count_digits(const unsigned *from, long first, long end, int shift, long *own) {
    for (long digit = 0; digit < radix; digit++) {
        own[digit] = 0;
    }
    for (long i = first; i < end; i++) {
        own[from[i] >> shift & (unsigned)(radix - 1)]++;
    }
}

/* Makes the counts of digits first..end offsets within the digit and digit_starts offsets within the run. */
static AS_WRITTEN long offsets_of_digits(long first, long end) {
    long before = 0;
    for (long digit = first; digit < end; digit++) {
        long within = 0;
        for (long thread = 0; thread < thread_count; thread++) {
            long *count = &counts[thread * radix + digit];
            long of_thread = *count;
            *count = within;
            within += of_thread;
        }
        digit_starts[digit] = before;
        before += within;
    }
    return before;
}

static AS_WRITTEN void add_runs_before(long id, long first, long end) {
    long before = 0;
    for (long thread = 0; thread < id; thread++) {
        before += run_totals[thread];
    }
    for (long digit = first; digit < end; digit++) {
        digit_starts[digit] += before;
    }
}

static AS_WRITTEN void move_keys(const unsigned *from, unsigned *to, long first, long end, int shift, long *own) {
    for (long digit = 0; digit < radix; digit++) {
        own[digit] += digit_starts[digit];
    }
    for (long i = first; i < end; i++) {
        to[own[from[i] >> shift & (unsigned)(radix - 1)]++] = from[i];
    }
}

static AS_WRITTEN void *worker(void *argument) {
    long id = (long)(intptr_t)argument;
    long first = share(id, key_count), end = share(id + 1, key_count);
    long first_digit = share(id, radix), end_digit = share(id + 1, radix);
    long *own = &counts[id * radix];
    unsigned *from = keys, *to = moved;
    for (int shift = 0; shift < KEY_BITS; shift += digit_bits) {
        count_digits(from, first, end, shift, own);
        wait_for_all();
        run_totals[id] = offsets_of_digits(first_digit, end_digit);
        wait_for_all();
        add_runs_before(id, first_digit, end_digit);
        wait_for_all();
        move_keys(from, to, first, end, shift, own);
        wait_for_all();
        unsigned *read = from;
        from = to;
        to = read;
    }
    return NULL;
}

/* The sum and an order-blind hash of all keys. */
struct fingerprint {
    unsigned long sum, hash;
};

static struct fingerprint fingerprint(const unsigned *values) {
    struct fingerprint print = {0, 0};
    for (long i = 0; i < key_count; i++) {
        unsigned long mixed = (values[i] + 1UL) * 0x9e3779b97f4a7c15UL;
        print.sum += values[i];
        print.hash += mixed ^ (mixed >> 29);
    }
    return print;
}

static void fill_keys(void) {
    unsigned long state = 4;
    for (long i = 0; i < key_count; i++) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        keys[i] = (unsigned)(state >> 33) & ((1U << KEY_BITS) - 1);
    }
}

int main(int count, char **arguments) {
    int option;
    while ((option = getopt(count, arguments, "hp:n:r:")) != -1) {
        switch (option) {
        case 'p':
            thread_count = number_argument(usage, option, optarg, 1, MAX_THREADS);
            break;
        case 'n':
            key_count = number_argument(usage, option, optarg, 1, 1000000000);
            break;
        case 'r':
            radix = number_argument(usage, option, optarg, 2, 65536);
            break;
        case 'h':
            printf("usage: %s", usage);
            return 0;
        default:
            usage_error(usage);
        }
    }
    if (optind < count) {
        usage_error(usage);
    }
    if ((radix & (radix - 1)) != 0) {
        fprintf(stderr, "-r takes a power of two, not %ld\n", radix);
        usage_error(usage);
    }
    for (digit_bits = 0; 1L << digit_bits < radix;) {
        digit_bits++;
    }
    keys = zeroed("radix", (size_t)key_count, sizeof *keys);
    moved = zeroed("radix", (size_t)key_count, sizeof *moved);
    counts = zeroed("radix", (size_t)(thread_count * radix), sizeof *counts);
    digit_starts = zeroed("radix", (size_t)radix, sizeof *digit_starts);
    run_totals = zeroed("radix", (size_t)thread_count, sizeof *run_totals);
    fill_keys();
    struct fingerprint before = fingerprint(keys);

    pthread_t *threads = zeroed("radix", (size_t)thread_count, sizeof *threads);
    pthread_barrier_init(&step_end, NULL, (unsigned)thread_count);
    start_threads("radix", threads, 1, thread_count, worker);
    worker((void *)0);
    join_threads("radix", threads, 1, thread_count);

    int passes = (KEY_BITS + digit_bits - 1) / digit_bits;
    const unsigned *sorted = passes % 2 == 0 ? keys : moved;
    struct fingerprint after = fingerprint(sorted);
    printf("radix: %ld keys in %d passes, least %u, median %u, most %u, hash %016lx\n", key_count, passes, sorted[0],
           sorted[key_count / 2], sorted[key_count - 1], after.hash);
    for (long i = 1; i < key_count; i++) {
        if (sorted[i - 1] > sorted[i]) {
            fail("radix", "key %ld is %u and the one before it %u: not in order", i, sorted[i], sorted[i - 1]);
        }
    }
    if (before.sum != after.sum || before.hash != after.hash) {
        fail("radix", "the sorted keys are not the keys that went in: their sum is %lu where %lu is right", after.sum,
             before.sum);
    }
    free(threads);
    free(keys);
    free(moved);
    free(counts);
    free(digit_starts);
    free(run_totals);
    return 0;
}
