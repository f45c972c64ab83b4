/* A one-dimensional complex FFT by the six-step method, in the manner of SPLASH's FFT: the n = 2^m points are a matrix
 * of sqrt(n) rows, and thread t owns a run of rows.
 *
 *     fft [-p THREADS] [-m LOG2_POINTS] [-s] [-t]
 *
 * With s = sqrt(n), index j = s * j1 + j2 of the input and k = k1 + s * k2 of the output:
 *
 *     1. transpose                     row j2 holds the points of index s * j1 + j2
 *     2. transform each row, and
 *     3. multiply element (j2, k1) by w^(j2 * k1), w the n-th root of unity
 *     4. transpose                     row k1 holds what is to be added up over j2
 *     5. transform each row
 *     6. transpose                     element (k2, k1) is output k1 + s * k2
 *
 * Transposes go by blocks, each thread beginning at the rows of the thread after it, in three parts: the patches of the
 * threads after it, of those before it, and its own. A thread writes its own rows only, so a barrier stands before each
 * transpose and none behind. There are no locks. Main starts p - 1 threads and then calls the worker function itself,
 * as thread 0.
 *
 * As in SPLASH's FFT, thread 0 (with -s every thread) takes the time before and after each transpose. Compilers test
 * for that once, and copy the call of the transpose into both arms: thread 0 then transposes alone, and the others
 * after it. Functions are kept from being inlined, so that the call stays one.
 *
 * Checks: outputs against the sum that defines them (all for up to 64 points, four beyond), the energy of input and
 * output (Parseval), and, with -t, the inverse transform of the output against the input. */
#include <math.h>
#include <time.h>

#include "crew.h"

static const char usage[] = "fft [-p THREADS] [-m LOG2_POINTS] [-s] [-t]\n"
                            "  -p THREADS      threads, 1 to 1024 and at most 2^(m/2) (default 4)\n"
                            "  -m LOG2_POINTS  2^m complex points, m even, 2 to 28 (default 10)\n"
                            "  -s              take the times of every thread, not of thread 0 alone, and print them\n"
                            "  -t              transform back as well and compare with the input\n";

/* An element is 16 bytes: a block is four cache lines wide, and 8 x 8 elements of source and target stay in a small
 * L1. */
enum { BLOCK = 8, FORWARD = 1, INVERSE = -1 };

struct point {
    double re, im;
};

static long thread_count = 4;
static long log_points = 10;
static int with_statistics;
static int test_inverse;

static long points;              /* n */
static long side;                /* sqrt(n): rows, and points in a row */
static struct point *data;       /* the input, and in the end the output (with -t: the input again) */
static struct point *scratch;    /* the other matrix of a transpose */
static struct point *row_roots;  /* exp(-2 pi i k / side) for k < side */
static struct point *fine_roots; /* exp(-2 pi i k / n) for k < side */
static struct point *twiddles;   /* exp(-2 pi i j k / n) at j * side + k */
static struct point *original;   /* a copy of the input */
static struct point *forward;    /* with -t: a copy of the output */
static pthread_barrier_t phase_end;
/* Seconds, by thread: of the whole, and of the transposes alone. Those that take no times have 0. */
static time_t whole_seconds[MAX_THREADS], transpose_seconds[MAX_THREADS];
/* The sum of what a thread read when it touched its rows: it is kept so that the reading is not left out. */
static double touched[MAX_THREADS];

static inline struct point times(struct point a, struct point b) {
    return (struct point){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* A root of unity for the direction asked for: its conjugate in the inverse transform. */
static inline struct point turned(struct point root, int direction) {
    root.im *= direction;
    return root;
}

static long first_row(long id) {
    return side * id / thread_count;
}

/* Writes the patch of the transpose of `from` that has rows first..end and columns column..column_end, block by block.
 * Always inlined: each of the three parts of a transpose has loops of its own. */
static inline __attribute__((always_inline)) void transpose_patch(const struct point *from, struct point *to,
                                                                  long first, long end, long column, long column_end) {
    for (long row = first; row < end; row += BLOCK) {
        long row_end = row + BLOCK < end ? row + BLOCK : end;
        for (long left = column; left < column_end; left += BLOCK) {
            long right = left + BLOCK < column_end ? left + BLOCK : column_end;
            for (long c = left; c < right; c++) {
                for (long r = row; r < row_end; r++) {
                    to[r * side + c].re = from[c * side + r].re;
                    to[r * side + c].im = from[c * side + r].im;
                }
            }
        }
    }
}

/* Writes a thread's rows of the transpose of `from` into `to`: first the patches from the threads after it, then those
 * from the threads before it, then its own. So no two threads read the same thread's rows at a time, and the first two
 * loops have trip counts that depend on the thread. */
static AS_WRITTEN void transpose_rows(const struct point *from, struct point *to, long id) {
    long first = first_row(id), end = first_row(id + 1);
    for (long partner = id + 1; partner < thread_count; partner++) {
        transpose_patch(from, to, first, end, first_row(partner), first_row(partner + 1));
    }
    for (long partner = 0; partner < id; partner++) {
        transpose_patch(from, to, first, end, first_row(partner), first_row(partner + 1));
    }
    transpose_patch(from, to, first, end, first, end);
}

/* The number whose lowest `bits` bits are those of `number` in reverse. */
static AS_WRITTEN long bits_reversed(long number, long bits) {
    long reversed = 0;
    for (long i = 0; i < bits; i++) {
        reversed = 2 * reversed + (number & 1);
        number >>= 1;
    }
    return reversed;
}

/* Puts the elements of a row into the order of their bit-reversed numbers. */
static AS_WRITTEN void reverse_row(struct point *row) {
    for (long i = 0; i < side; i++) {
        long reversed = bits_reversed(i, log_points / 2);
        if (i < reversed) {
            struct point kept = row[i];
            row[i] = row[reversed];
            row[reversed] = kept;
        }
    }
}

/* Transforms one row in place: radix-2 butterflies over spans of 2, 4 ... side. */
static AS_WRITTEN void transform_row(struct point *row, int direction) {
    reverse_row(row);
    for (long half = 1; half < side; half *= 2) {
        long stride = side / (2 * half);
        for (long start = 0; start < side; start += 2 * half) {
            for (long k = 0; k < half; k++) {
                struct point *low = &row[start + k];
                struct point *high = low + half;
                struct point turned_high = times(*high, turned(row_roots[k * stride], direction));
                *high = (struct point){low->re - turned_high.re, low->im - turned_high.im};
                *low = (struct point){low->re + turned_high.re, low->im + turned_high.im};
            }
        }
    }
}

static AS_WRITTEN void twiddle_row(struct point *row, long number, int direction) {
    const struct point *factors = &twiddles[number * side];
    for (long k = 0; k < side; k++) {
        row[k] = times(row[k], turned(factors[k], direction));
    }
}

static AS_WRITTEN void scale_row(struct point *row, double factor) {
    for (long k = 0; k < side; k++) {
        row[k].re *= factor;
        row[k].im *= factor;
    }
}

static AS_WRITTEN void copy_row(const struct point *from, struct point *to) {
    for (long k = 0; k < side; k++) {
        to[k].re = from[k].re;
        to[k].im = from[k].im;
    }
}

/* A thread's share of one whole transform of `data`. Thread 0, or with `time_all` every thread, adds to `seconds` what
 * its transposes took. */
static AS_WRITTEN void transform(long id, int direction, int time_all, time_t *seconds) {
    long first = first_row(id), end = first_row(id + 1);
    time_t began = 0;
    pthread_barrier_wait(&phase_end);
    if (id == 0 || time_all) {
        began = time(NULL);
    }
    transpose_rows(data, scratch, id);
    if (id == 0 || time_all) {
        *seconds += time(NULL) - began;
    }
    for (long row = first; row < end; row++) {
        transform_row(&scratch[row * side], direction);
        twiddle_row(&scratch[row * side], row, direction);
    }
    pthread_barrier_wait(&phase_end);
    if (id == 0 || time_all) {
        began = time(NULL);
    }
    transpose_rows(scratch, data, id);
    if (id == 0 || time_all) {
        *seconds += time(NULL) - began;
    }
    for (long row = first; row < end; row++) {
        transform_row(&data[row * side], direction);
        if (direction == INVERSE) {
            scale_row(&data[row * side], 1.0 / (double)points);
        }
    }
    pthread_barrier_wait(&phase_end);
    if (id == 0 || time_all) {
        began = time(NULL);
    }
    transpose_rows(data, scratch, id);
    if (id == 0 || time_all) {
        *seconds += time(NULL) - began;
    }
    pthread_barrier_wait(&phase_end);
    for (long row = first; row < end; row++) {
        copy_row(&scratch[row * side], &data[row * side]);
    }
    pthread_barrier_wait(&phase_end);
}

/* Reads all of a thread's rows, so that their memory is at hand before times are taken. */
static AS_WRITTEN double touch_rows(long first, long end) {
    double sum = 0;
    for (long i = first * side; i < end * side; i++) {
        sum += data[i].re + scratch[i].re + twiddles[i].re;
    }
    return sum;
}

static AS_WRITTEN void *worker(void *argument) {
    long id = (long)(intptr_t)argument;
    long first = first_row(id), end = first_row(id + 1);
    time_t began = 0, seconds = 0;
    touched[id] = touch_rows(first, end);
    pthread_barrier_wait(&phase_end);
    if (id == 0 || with_statistics) {
        began = time(NULL);
    }
    transform(id, FORWARD, with_statistics, &seconds);
    if (test_inverse) {
        for (long row = first; row < end; row++) {
            copy_row(&data[row * side], &forward[row * side]);
        }
        transform(id, INVERSE, with_statistics, &seconds);
    }
    if (id == 0 || with_statistics) {
        whole_seconds[id] = time(NULL) - began;
        transpose_seconds[id] = seconds;
    }
    return NULL;
}

static struct point unit_root(long numerator, long denominator) {
    double angle = -2.0 * M_PI * (double)numerator / (double)denominator;
    return (struct point){cos(angle), sin(angle)};
}

/* exp(-2 pi i turn / n), 0 <= turn < n, from the two small tables: a recorded run pays for every sine. */
static struct point root(long turn) {
    return times(row_roots[turn / side], fine_roots[turn % side]);
}

/* Numbers of -1 up to 1 from a generator of our own, so that every machine transforms the same input. */
static double next_number(unsigned long *state) {
    *state = *state * 6364136223846793005UL + 1442695040888963407UL;
    return (double)(*state >> 33) / (double)(1UL << 30) - 1.0;
}

static void prepare(void) {
    points = 1L << log_points;
    side = 1L << (log_points / 2);
    data = zeroed("fft", (size_t)points, sizeof *data);
    scratch = zeroed("fft", (size_t)points, sizeof *scratch);
    twiddles = zeroed("fft", (size_t)points, sizeof *twiddles);
    original = zeroed("fft", (size_t)points, sizeof *original);
    forward = test_inverse ? zeroed("fft", (size_t)points, sizeof *forward) : data;
    row_roots = zeroed("fft", (size_t)side, sizeof *row_roots);
    fine_roots = zeroed("fft", (size_t)side, sizeof *fine_roots);
    for (long k = 0; k < side; k++) {
        row_roots[k] = unit_root(k, side);
        fine_roots[k] = unit_root(k, points);
    }
    for (long j = 0; j < side; j++) {
        for (long k = 0; k < side; k++) {
            twiddles[j * side + k] = root(j * k);
        }
    }
    unsigned long state = 20040;
    for (long i = 0; i < points; i++) {
        original[i].re = data[i].re = next_number(&state);
        original[i].im = data[i].im = next_number(&state);
    }
}

/* Output k by the definition: the sum of all inputs, each turned by its own angle; for few points without the tables,
 * so that a wrong table is found. */
static struct point defined_output(long k) {
    struct point sum = {0, 0};
    for (long j = 0; j < points; j++) {
        struct point term = times(original[j], points <= 64 ? unit_root(j * k % points, points) : root(j * k % points));
        sum.re += term.re;
        sum.im += term.im;
    }
    return sum;
}

static double energy(const struct point *values) {
    double sum = 0;
    for (long i = 0; i < points; i++) {
        sum += values[i].re * values[i].re + values[i].im * values[i].im;
    }
    return sum;
}

static double distance(struct point a, struct point b) {
    return hypot(a.re - b.re, a.im - b.im);
}

/* Rounding errors grow with m; values are about sqrt(n) large. 1e-12 leaves some hundred times what is seen. */
static double tolerance(void) {
    return 1e-12 * (double)(log_points + 1) * sqrt((double)points);
}

static void check(void) {
    long step = points <= 64 ? 1 : points / 3 - 1;
    for (long k = 0; k < points; k += step) {
        struct point right = defined_output(k);
        if (!(distance(forward[k], right) <= tolerance())) {
            fail("fft", "output %ld is %.12g%+.12gi where %.12g%+.12gi is right", k, forward[k].re, forward[k].im,
                 right.re, right.im);
        }
    }
    double before = energy(original) * (double)points, after = energy(forward);
    if (!(fabs(before - after) <= 1e-12 * (double)(log_points + 1) * before)) {
        fail("fft", "the energy of the output is %.12g where %.12g is right", after, before);
    }
    for (long i = 0; test_inverse && i < points; i++) {
        if (!(distance(data[i], original[i]) <= tolerance())) {
            fail("fft", "the inverse transform gives %.12g%+.12gi for input %ld, which is %.12g%+.12gi", data[i].re,
                 data[i].im, i, original[i].re, original[i].im);
        }
    }
}

/* The sum of all outputs: n times input 0 by the definition, printed to fewer digits than rounding can touch. */
static void print_checksum(void) {
    double re = 0, im = 0, sizes = 0;
    for (long i = 0; i < points; i++) {
        re += forward[i].re;
        im += forward[i].im;
        sizes += fabs(forward[i].re) + fabs(forward[i].im);
    }
    printf("fft: %ld points, checksum %.4f %.4f %.4f\n", points, re, im, sizes);
}

/* Each transpose may be seen to last a second longer than it does, and the whole a second shorter. */
static void check_times(void) {
    long transposes = test_inverse ? 6 : 3;
    for (long id = 0; id < thread_count; id++) {
        if (whole_seconds[id] < 0 || transpose_seconds[id] > whole_seconds[id] + transposes + 1) {
            fail("fft", "thread %ld took %ld s for its transposes and %ld s for all", id, (long)transpose_seconds[id],
                 (long)whole_seconds[id]);
        }
        if (with_statistics) {
            printf("fft: thread %ld took %ld s, %ld of them for transposes\n", id, (long)whole_seconds[id],
                   (long)transpose_seconds[id]);
        }
    }
}

int main(int count, char **arguments) {
    int option;
    while ((option = getopt(count, arguments, "hp:m:st")) != -1) {
        switch (option) {
        case 'p':
            thread_count = number_argument(usage, option, optarg, 1, MAX_THREADS);
            break;
        case 'm':
            log_points = number_argument(usage, option, optarg, 2, 28);
            break;
        case 's':
            with_statistics = 1;
            break;
        case 't':
            test_inverse = 1;
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
    if (log_points % 2 != 0) {
        fprintf(stderr, "-m must be even, so that the points form a square; %ld is odd\n", log_points);
        usage_error(usage);
    }
    if (thread_count > 1L << (log_points / 2)) {
        fprintf(stderr, "-m %ld gives %ld rows, too few for %ld threads\n", log_points, 1L << (log_points / 2),
                thread_count);
        usage_error(usage);
    }
    prepare();
    pthread_t *threads = zeroed("fft", (size_t)thread_count, sizeof *threads);
    pthread_barrier_init(&phase_end, NULL, (unsigned)thread_count);
    start_threads("fft", threads, 1, thread_count, worker);
    worker((void *)0);
    join_threads("fft", threads, 1, thread_count);
    print_checksum();
    check();
    check_times();
    if (test_inverse) {
        puts("fft: the inverse transform gives the input");
        free(forward);
    }
    free(threads);
    free(data);
    free(scratch);
    free(twiddles);
    free(original);
    free(row_roots);
    free(fine_roots);
    return 0;
}
