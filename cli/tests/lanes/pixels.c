/* One picture, drawn in as many ways as there are kinds of lanes: each prints the same number. */
#ifdef __cplusplus
#include <future>
#include <stdexcept>
#include <vector>
#endif
#include <pthread.h>
#include <stdio.h>

enum { WIDTH = 64, PIXELS = 2048 };
static int out[PIXELS];

__attribute__((noipa)) int pixel(int i) {
    double cr = (i % WIDTH) / 24.0 - 2.0, ci = (i / WIDTH) / 24.0 - 1.3, zr = 0, zi = 0;
    int n = 0;
    while (n < 100 && zr * zr + zi * zi < 4.0) {
        double t = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = t;
        n++;
    }
    return n;
}

__attribute__((noipa)) void item(int i) { out[i] = pixel(i); }

#if defined(THREADS)
static void *work(void *p) {
    item((int)(long)p);
    return 0;
}
static void draw(void) {
    pthread_t threads[WIDTH];
    for (long first = 0; first < PIXELS; first += WIDTH) {
        for (long i = 0; i < WIDTH; i++)
            pthread_create(&threads[i], 0, work, (void *)(first + i));
        for (long i = 0; i < WIDTH; i++)
            pthread_join(threads[i], 0);
    }
}
#elif defined(SCHEDULE)
static void draw(void) {
#pragma omp parallel for schedule(SCHEDULE)
    for (int i = 0; i < PIXELS; i++)
        out[i] = pixel(i);
}
#elif defined(COLLAPSE)
static void draw(void) {
#pragma omp parallel for collapse(2) schedule(static)
    for (int y = 0; y < PIXELS / WIDTH; y++)
        for (int x = 0; x < WIDTH; x++)
            out[y * WIDTH + x] = pixel(y * WIDTH + x);
}
#elif defined(STEPS)
static void draw(void) {
#pragma omp parallel
    for (int step = 0; step < 3; step++) {
#pragma omp for schedule(SCHEDULE_OF_STEPS)
        for (int i = 0; i < PIXELS; i++)
            out[i] = pixel(i);
    }
}
#elif defined(TARGET)
static void draw(void) {
#pragma omp target teams distribute parallel for map(from : out)
    for (int i = 0; i < PIXELS; i++)
        out[i] = pixel(i);
}
#elif defined(TASKS)
static void draw(void) {
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < PIXELS; i++) {
#pragma omp task firstprivate(i)
        item(i);
    }
}
#elif defined(TASKLOOP)
static void draw(void) {
#pragma omp parallel
#pragma omp single
#pragma omp taskloop num_tasks(PIXELS)
    for (int i = 0; i < PIXELS; i++)
        item(i);
}
#elif defined(POOL)
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int next;
static void *worker(void *p) {
    for (;;) {
        pthread_mutex_lock(&mutex);
        int i = next < PIXELS ? next++ : -1;
        pthread_mutex_unlock(&mutex);
        if (i < 0)
            return p;
        item(i);
    }
}
static void draw(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, worker, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
}
#elif defined(ASYNC)
static void draw(void) {
    for (int first = 0; first < PIXELS; first += WIDTH) {
        std::vector<std::future<void>> all;
        for (int i = first; i < first + WIDTH; i++)
            all.push_back(std::async(std::launch::async, item, i));
    }
}
#elif defined(THROWS)
__attribute__((noipa)) void risky(int i) {
    if (i % 5 == 0)
        throw std::runtime_error("a fifth");
    item(i);
}
static void draw(void) {
    for (int i = 0; i < PIXELS; i++) {
        try {
            risky(i);
        } catch (const std::exception &) {
            item(i);
        }
    }
}
#elif defined(RECURSES)
__attribute__((noipa)) int halves(int first, int end) {
    if (end - first == 1) {
        item(first);
        return 1;
    }
    int middle = (first + end) / 2;
    return halves(first, middle) + halves(middle, end);
}
static void draw(void) {
    for (int first = 0; first < PIXELS; first += WIDTH)
        halves(first, first + WIDTH);
}
#elif defined(LEAVES)
/* Leaves the loop by a break in its midst. */
static void draw(void) {
    for (int i = 0; i < PIXELS; i++) {
        item(i);
        if (i == 999)
            break;
        out[i] ^= 1;
    }
}
#else
static void draw(void) {
    int i = 0;
    while (i < PIXELS) {
        out[i] = pixel(i);
        i++;
    }
}
#endif

int main(void) {
    draw();
    long sum = 0;
    for (int i = 0; i < PIXELS; i++)
        sum += out[i];
    printf("%ld\n", sum);
    return 0;
}
