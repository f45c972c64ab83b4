/* The Mandelbrot set by OpenMP: rows of an N x N picture are shared out, and each pixel iterates until it escapes or
 * ITERATIONS are done, so that the trip count of the inner loop differs from pixel to pixel.
 *
 *     mandelbrot [-p THREADS] [-n SIZE] [-i ITERATIONS] [-s static|dynamic]
 *
 * The picture spans -2 to 1 and -1.5i to 1.5i and is symmetric about the real axis to the last bit.
 *
 * Checks: row y equals row N - 1 - y; every sixteenth row equals the same row computed by main alone. */
#include <omp.h>
#include <string.h>
#include <unistd.h>

#include "args.h"

static const char usage[] = "mandelbrot [-p THREADS] [-n SIZE] [-i ITERATIONS] [-s SCHEDULE]\n"
                            "  -p THREADS     threads, 1 to 1024 (default 4)\n"
                            "  -n SIZE        pixels in a row and rows, 1 to 30000 (default 64)\n"
                            "  -i ITERATIONS  the most iterations of a pixel, 1 to 1000000 (default 100)\n"
                            "  -s SCHEDULE    static: runs of rows, shared out beforehand (default);\n"
                            "                 dynamic: each thread takes the next row when it is done with one\n";

static int size = 64;
static int most_iterations = 100;

/* How many iterations the pixel takes to escape; most_iterations when it does not. */
static inline int escape(int x, int y) {
    double c_re = 3.0 * (x + 0.5) / size - 2.0;
    double c_im = 1.5 * (2 * y + 1 - size) / size;
    double re = 0, im = 0;
    int iterations = 0;
    while (iterations < most_iterations && re * re + im * im <= 4.0) {
        double next_im = 2.0 * re * im + c_im;
        re = re * re - im * im + c_re;
        im = next_im;
        iterations++;
    }
    return iterations;
}

static inline void compute_row(int *row, int y) {
    for (int x = 0; x < size; x++) {
        row[x] = escape(x, y);
    }
}

static void compute_static(int *picture, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int y = 0; y < size; y++) {
        compute_row(&picture[(long)y * size], y);
    }
}

static void compute_dynamic(int *picture, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int y = 0; y < size; y++) {
        compute_row(&picture[(long)y * size], y);
    }
}

static void check(const int *picture) {
    for (int y = 0; y < size; y++) {
        const int *row = &picture[(long)y * size], *mirrored = &picture[(long)(size - 1 - y) * size];
        if (memcmp(row, mirrored, (size_t)size * sizeof *row) != 0) {
            fail("mandelbrot", "row %d differs from its mirror image, row %d", y, size - 1 - y);
        }
    }
    for (int y = 0; y < size; y += 16) {
        for (int x = 0; x < size; x++) {
            int right = escape(x, y);
            if (picture[(long)y * size + x] != right) {
                fail("mandelbrot", "pixel %d of row %d took %d iterations where %d is right", x, y,
                     picture[(long)y * size + x], right);
            }
        }
    }
}

int main(int count, char **arguments) {
    int threads = 4, dynamic = 0, option;
    while ((option = getopt(count, arguments, "hp:n:i:s:")) != -1) {
        switch (option) {
        case 'p':
            threads = (int)number_argument(usage, option, optarg, 1, MAX_THREADS);
            break;
        case 'n':
            size = (int)number_argument(usage, option, optarg, 1, 30000);
            break;
        case 'i':
            most_iterations = (int)number_argument(usage, option, optarg, 1, 1000000);
            break;
        case 's':
            dynamic = strcmp(optarg, "dynamic") == 0;
            if (!dynamic && strcmp(optarg, "static") != 0) {
                fprintf(stderr, "-s takes static or dynamic, not \"%s\"\n", optarg);
                usage_error(usage);
            }
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
    int *picture = zeroed("mandelbrot", (size_t)size * (size_t)size, sizeof *picture);
    omp_set_dynamic(0);
    if (dynamic) {
        compute_dynamic(picture, threads);
    } else {
        compute_static(picture, threads);
    }
    long inside = 0, iterations = 0;
    for (long i = 0; i < (long)size * size; i++) {
        inside += picture[i] == most_iterations;
        iterations += picture[i];
    }
    printf("mandelbrot: %d x %d pixels, %ld stay inside, %ld iterations\n", size, size, inside, iterations);
    check(picture);
    free(picture);
    return 0;
}
