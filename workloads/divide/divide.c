/* The example of "Fusion of calling sites" (its figure 1): the parity of a thread's number picks one of two arms, and
 * both arms, having computed different arguments, call the same expensive function. Lanes that reconverge only after
 * the arms run `divide` twice per round; a program whose two calls were fused would run it once.
 *
 *     divide [-p THREADS] [-n ROUNDS]
 *
 * Each thread runs ROUNDS rounds and waits at a barrier; the results are printed in thread order after all have ended,
 * and checked against the processor's own division. */
#include "crew.h"

static const char usage[] = "divide [-p THREADS] [-n ROUNDS]\n"
                            "  -p THREADS  threads, 1 to 1024 (default 4)\n"
                            "  -n ROUNDS   rounds per thread, 1 to 1000000 (default 20)\n";

struct result {
    unsigned long quotients; /* the sum over all rounds */
    unsigned long products;  /* odd threads: the sum of the products that their arm prints; even ones: 0 */
};

static long thread_count = 4;
static long rounds = 20;
static unsigned *input; /* what `read` gives thread t in round r: input[t * rounds + r] */
static struct result *results;
static pthread_barrier_t all_done;

/* Long division by shifting and subtracting, a bit of the quotient at a time. */
static AS_WRITTEN unsigned divide(unsigned dividend, unsigned divisor) {
    unsigned long remainder = 0;
    unsigned quotient = 0;
    for (int bit = 31; bit >= 0; bit--) {
        remainder = (remainder << 1) | ((dividend >> bit) & 1);
        quotient <<= 1;
        if (remainder >= divisor) {
            remainder -= divisor;
            quotient |= 1;
        }
    }
    return quotient;
}

/* Keeps what an odd thread's arm prints. Opaque, so that the call before it stays the arm's own. */
static AS_WRITTEN void note(struct result *result, unsigned product) {
    result->products += product;
}

/* One round: both calls of `divide` are calls, not jumps at the function's end, since what they return is used after
 * the join. */
static AS_WRITTEN void one_round(unsigned id, long round, struct result *result) {
    unsigned quotient;
    if (id % 2 == 0) {
        unsigned dividend = id * 1000 + (unsigned)round;
        unsigned divisor = id + 1;
        quotient = divide(dividend, divisor);
    } else {
        unsigned dividend = id * 2000 + (unsigned)round;
        unsigned divisor = id + 2;
        unsigned read = input[(long)id * rounds + round];
        unsigned product = read * divisor;
        quotient = divide(dividend, divisor);
        note(result, product);
    }
    result->quotients += quotient;
}

static AS_WRITTEN void *worker(void *argument) {
    unsigned id = (unsigned)(intptr_t)argument;
    struct result *result = &results[id];
    for (long round = 0; round < rounds; round++) {
        one_round(id, round, result);
    }
    pthread_barrier_wait(&all_done);
    return NULL;
}

static void fill_input(void) {
    unsigned state = 12345;
    for (long i = 0; i < thread_count * rounds; i++) {
        state = state * 1664525 + 1013904223;
        input[i] = state >> 16;
    }
}

static void check(void) {
    for (long id = 0; id < thread_count; id++) {
        unsigned long quotients = 0, products = 0;
        for (long round = 0; round < rounds; round++) {
            long dividend = id * (id % 2 == 0 ? 1000 : 2000) + round;
            long divisor = id % 2 == 0 ? id + 1 : id + 2;
            quotients += (unsigned long)(dividend / divisor);
            products += id % 2 == 0 ? 0 : (unsigned)(input[id * rounds + round] * (unsigned long)divisor);
        }
        if (results[id].quotients != quotients || results[id].products != products) {
            fail("divide", "thread %ld: quotients add up to %lu and products to %lu where %lu and %lu are right", id,
                 results[id].quotients, results[id].products, quotients, products);
        }
    }
}

int main(int count, char **arguments) {
    int option;
    while ((option = getopt(count, arguments, "hp:n:")) != -1) {
        switch (option) {
        case 'p':
            thread_count = number_argument(usage, option, optarg, 1, MAX_THREADS);
            break;
        case 'n':
            rounds = number_argument(usage, option, optarg, 1, 1000000);
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
    pthread_t *threads = zeroed("divide", (size_t)thread_count, sizeof *threads);
    input = zeroed("divide", (size_t)(thread_count * rounds), sizeof *input);
    results = zeroed("divide", (size_t)thread_count, sizeof *results);
    fill_input();
    pthread_barrier_init(&all_done, NULL, (unsigned)thread_count);
    start_threads("divide", threads, 0, thread_count, worker);
    join_threads("divide", threads, 0, thread_count);
    for (long id = 0; id < thread_count; id++) {
        printf("thread %ld: quotients %lu", id, results[id].quotients);
        if (id % 2 != 0) {
            printf(", products %lu", results[id].products);
        }
        putchar('\n');
    }
    check();
    free(threads);
    free(input);
    free(results);
    return 0;
}
