/* Prices of swaptions by simulation: the forward rates of the next years follow the model of Heath, Jarrow and Morton with
 * three factors, and a swaption is worth what it pays on average, discounted. Thread t prices a run of the swaptions.
 *
 *     swaptions [-p THREADS] [-ns SWAPTIONS] [-sm TRIALS]      -nt is -p by its other name
 *
 * A trial draws a path of rates and looks at what the swap is worth at maturity. Lanes part by where a random number lies
 * in the normal distribution (the middle and the tails have formulas of their own, with polynomials that one function
 * evaluates), by whether the swaption is the payer's or the receiver's (both sides value the same two streams of payments,
 * in a different order), and by how long the swap runs.
 *
 * The discrete drift is the one that keeps discounted bonds fair at every step (Glasserman, Monte Carlo Methods in
 * Financial Engineering, 2003, section 3.6.2). Every swaption has random numbers of its own, so that results are the same
 * for any number of threads. Checks: the mean discount factor against the bond price of the first day, within six standard
 * errors; of two swaptions that differ only in who pays, the difference against the mean value of the swap. */
#include <getopt.h>
#include <math.h>

#include "crew.h"

static const char usage[] = "swaptions [-p THREADS] [-ns SWAPTIONS] [-sm TRIALS]\n"
                            "  -p THREADS     threads, 1 to 1024 (default 4); -nt is the same\n"
                            "  -ns SWAPTIONS  swaptions, even, 2 to 100000 (default 16)\n"
                            "  -sm TRIALS     trials per swaption, 1 to 10000000 (default 20)\n";

enum { PERIODS = 11, FACTORS = 3 };

/* Years per period. */
static const double period = 0.5;

struct swaption {
    int payer;    /* whether its holder may pay the fixed rate (else: receive it) */
    int maturity; /* the period at whose beginning it can be exercised */
    int length;   /* periods that the swap runs from then on */
    double strike;
    double first_rate, slope; /* of the first day's forward rates */
    double price, swap_value; /* means over the trials, of the swaption and of the payer's swap */
    double discount, square;  /* the sums, over the trials, of the discount factor of all periods and of its square */
};

static long thread_count = 4;
static long swaption_count = 16;
static long trials = 20;
static struct swaption *swaptions;
static double volatility[FACTORS][PERIODS]; /* by factor and periods to maturity */
static double drift[PERIODS];               /* by periods to maturity */

static AS_WRITTEN double polynomial(const double *coefficients, int count, double x) {
    double value = 0;
    for (int i = count - 1; i >= 0; i--) {
        value = value * x + coefficients[i];
    }
    return value;
}

/* The inverse of the normal distribution function, by Beasley and Springer in the middle and Moro in the tails (the same
 * book, section 2.3.2), to about nine digits. */
static AS_WRITTEN double inverse_normal(double u) {
    static const double above[] = {2.50662823884, -18.61500062529, 41.39119773534, -25.44106049637};
    static const double below[] = {1, -8.47351093090, 23.08336743743, -21.06224101826, 3.13082909833};
    static const double tail[] = {0.3374754822726147, 0.9761690190917186, 0.1607979714918209,
                                  0.0276438810333863, 0.0038405729373609, 0.0003951896511919,
                                  0.0000321767881768, 0.0000002888167364, 0.0000003960315187};
    double x = u - 0.5, result;
    if (fabs(x) < 0.42) {
        double square = x * x;
        result = x * polynomial(above, 4, square);
        result /= polynomial(below, 5, square);
    } else {
        double side = x > 0 ? 1 - u : u;
        result = polynomial(tail, 9, log(-log(side)));
        result = x < 0 ? -result : result;
    }
    return result;
}

static double random_unit(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 12) + 0.5) / 4503599627370496.0;
}

/* A path: rates[j] becomes the rate of period j as it is when that period begins; the rates of the day of maturity go to
 * `seen`. */
static AS_WRITTEN void draw_path(const struct swaption *s, uint64_t *state, double *rates, double *seen) {
    for (int j = 0; j < PERIODS; j++) {
        rates[j] = s->first_rate + s->slope * j;
    }
    for (int i = 1; i <= PERIODS; i++) {
        if (i - 1 == s->maturity) {
            memcpy(seen, rates, PERIODS * sizeof *seen);
        }
        double shock[FACTORS];
        for (int k = 0; k < FACTORS; k++) {
            shock[k] = inverse_normal(random_unit(state)) * sqrt(period);
        }
        for (int j = i; j < PERIODS; j++) {
            rates[j] += drift[j - i];
            for (int k = 0; k < FACTORS; k++) {
                rates[j] += volatility[k][j - i] * shock[k];
            }
        }
    }
}

static AS_WRITTEN double discounted(const double *rates, int from, int to) {
    double sum = 0;
    for (int j = from; j < to; j++) {
        sum += rates[j];
    }
    return exp(-sum * period);
}

/* What `rate` per year, paid at the end of each period of the swap, is worth at maturity. */
static AS_WRITTEN double annuity(const struct swaption *s, const double *rates, double rate) {
    double value = 0;
    for (int j = 1; j <= s->length; j++) {
        value += rate * period * discounted(rates, s->maturity, s->maturity + j);
    }
    return value;
}

/* What the swap is worth to the holder at maturity. */
static AS_WRITTEN double swap_value(const struct swaption *s, const double *rates) {
    double value;
    if (s->payer) {
        value = 1 - discounted(rates, s->maturity, s->maturity + s->length);
        value -= annuity(s, rates, s->strike);
    } else {
        double fixed = annuity(s, rates, s->strike);
        value = fixed + discounted(rates, s->maturity, s->maturity + s->length) - 1;
    }
    return value;
}

/* Both of a pair of swaptions, number 2i and 2i + 1, see the same paths. */
static AS_WRITTEN void price(long index) {
    struct swaption *s = &swaptions[index];
    uint64_t state = (uint64_t)(index / 2 + 1) * 0x9E3779B97F4A7C15u;
    double rates[PERIODS], seen[PERIODS];
    for (long trial = 0; trial < trials; trial++) {
        draw_path(s, &state, rates, seen);
        double value = swap_value(s, seen), today = discounted(rates, 0, s->maturity);
        double all = discounted(rates, 0, PERIODS);
        s->price += value > 0 ? value * today : 0;
        s->swap_value += (s->payer ? value : -value) * today;
        s->discount += all;
        s->square += all * all;
    }
    s->price /= (double)trials;
    s->swap_value /= (double)trials;
}

static AS_WRITTEN void *worker(void *argument) {
    long id = (long)(intptr_t)argument;
    /* Round-robin, so that a swaption and its partner, which sides of a branch they take, are neighbouring lanes'. */
    for (long i = id; i < swaption_count; i += thread_count) {
        price(i);
    }
    return NULL;
}

static void fill_tables(void) {
    static const double size[FACTORS] = {0.010, 0.007, 0.004}, decay[FACTORS] = {0.1, 0.5, 1.2};
    double before[FACTORS] = {0};
    for (int j = 0; j < PERIODS; j++) {
        drift[j] = 0;
        for (int k = 0; k < FACTORS; k++) {
            volatility[k][j] = size[k] * exp(-decay[k] * j * period);
            double sum = before[k] + volatility[k][j] * period;
            drift[j] += (sum * sum - before[k] * before[k]) / 2;
            before[k] = sum;
        }
    }
    for (long i = 0; i < swaption_count; i++) {
        long pair = i / 2;
        struct swaption *s = &swaptions[i];
        s->payer = i % 2 == 0;
        s->maturity = 2 + (int)(pair % 4);
        s->length = 3 + (int)(pair % 3);
        s->first_rate = 0.03 + 0.002 * (double)(pair % 7);
        s->slope = 0.0005 * (double)(pair % 5);
        s->strike = s->first_rate + 0.003 * (double)(pair % 3 - 1);
    }
}

/* The sum over all trials of what the mean discount factor is off, and what that sum may be off by chance. */
static void check_discounts(void) {
    double off = 0, variance = 0, scale = 0;
    for (long i = 0; i < swaption_count; i += 2) {
        const struct swaption *s = &swaptions[i];
        double rates = 0, count = (double)trials;
        for (int j = 0; j < PERIODS; j++) {
            rates += s->first_rate + s->slope * j;
        }
        off += s->discount - count * exp(-rates * period);
        double about = s->square - s->discount * s->discount / count;
        variance += about > 0 ? about : 0;
        scale += count;
    }
    /* A single trial says nothing about its own variance: the discount factor's deviation is below 0.1 in any case. */
    double bound = trials == 1 ? 0.6 * sqrt(scale) : 6 * sqrt(variance) * sqrt(1 + 1 / (double)(trials - 1));
    if (fabs(off) > bound) {
        fail("swaptions", "discount factors add up to %g more than bonds cost, and chance explains only %g", off, bound);
    }
}

static void check_parity(void) {
    for (long i = 0; i < swaption_count; i += 2) {
        const struct swaption *payer = &swaptions[i], *receiver = &swaptions[i + 1];
        double off = payer->price - receiver->price - payer->swap_value;
        if (fabs(off) > 1e-9 || fabs(payer->swap_value - receiver->swap_value) > 1e-9) {
            fail("swaptions", "payer's %g less receiver's %g is not the swap's %g", payer->price, receiver->price,
                 payer->swap_value);
        }
    }
}

static void read_arguments(int count, char **arguments) {
    static const struct option words[] = {{"ns", required_argument, NULL, 's'},
                                          {"sm", required_argument, NULL, 'm'},
                                          {"nt", required_argument, NULL, 'p'},
                                          {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long_only(count, arguments, "hp:", words, NULL)) != -1) {
        switch (option) {
        case 'p':
            thread_count = number_argument(usage, option, optarg, 1, MAX_THREADS);
            break;
        case 's':
            swaption_count = number_argument(usage, option, optarg, 2, 100000) & ~1L;
            break;
        case 'm':
            trials = number_argument(usage, option, optarg, 1, 10000000);
            break;
        case 'h':
            printf("usage: %s", usage);
            exit(0);
        default:
            usage_error(usage);
        }
    }
    if (optind < count) {
        usage_error(usage);
    }
}

int main(int count, char **arguments) {
    read_arguments(count, arguments);
    swaptions = zeroed("swaptions", (size_t)swaption_count, sizeof *swaptions);
    pthread_t *threads = zeroed("swaptions", (size_t)thread_count, sizeof *threads);
    fill_tables();
    start_threads("swaptions", threads, 0, thread_count, worker);
    join_threads("swaptions", threads, 0, thread_count);
    check_discounts();
    check_parity();
    double sum = 0;
    for (long i = 0; i < swaption_count; i++) {
        sum += swaptions[i].price;
    }
    printf("%ld swaptions, %ld trials: mean price %.9f\n", swaption_count, trials, sum / (double)swaption_count);
    free(threads);
    free(swaptions);
    return 0;
}
