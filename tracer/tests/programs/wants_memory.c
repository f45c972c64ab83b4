// Asks for memory at every address at which a tracer could have put some of its own, while threads compute, wait and call.
// Natively all of it is free. Prints what it could not have, and the threads' sums.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int done;
static long sums[3];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static volatile sig_atomic_t ticks;

static void tick(int signal) {
    (void)signal;
    ticks++;
}

static void *computes(void *unused) {
    for (long i = 0; i < 3000000; i++) sums[0] += i ^ (sums[0] >> 3);
    return unused;
}

static void *waits(void *unused) {
    pthread_mutex_lock(&lock);
    while (!done) pthread_cond_wait(&woken, &lock);
    sums[1] = 7;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *calls(void *unused) {
    do {
        usleep(100);
        sums[2] = getpid() > 0;
    } while (!done);
    return unused;
}

// The mappings that are a tracer's: starts and lengths.
static int foreign(unsigned long starts[64], unsigned long lengths[64]) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (strstr(line, "/memfd:") && sscanf(line, "%lx-%lx", &start, &end) == 2 && count < 64) {
            starts[count] = start;
            lengths[count++] = end - start > 1 << 20 ? 1 << 20 : end - start;
        }
    }
    fclose(maps);
    return count;
}

static void check(const char *what, void *got, unsigned long wanted, unsigned long length) {
    if (got != (void *)wanted) {
        printf("%s: not had: %s\n", what, got == MAP_FAILED ? strerror(errno) : "it lies elsewhere");
        return;
    }
    memset(got, 0x5a, length);
    for (unsigned long i = 0; i < length; i += 4096)
        if (((char *)got)[i] != 0x5a) printf("%s: overwritten\n", what);
}

int main(void) {
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &often, 0);
    pthread_t threads[3];
    void *(*bodies[3])(void *) = {computes, waits, calls};
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, bodies[i], 0);
    const int rw = PROT_READ | PROT_WRITE, private = MAP_PRIVATE | MAP_ANONYMOUS;
    // What is free as one piece natively: most of the memory of MAP_32BIT, all below a program, above one that lies low.
    const unsigned long most = 900ul << 20, large = (unsigned long)main < 1ul << 32 ? 100ul << 40 : 85ul << 40;
    char *low = mmap(0, most, PROT_NONE, private | MAP_NORESERVE | MAP_32BIT, -1, 0);
    if (low == MAP_FAILED) puts("no 900 MiB of low memory");
    char *reserved = mmap(0, large, PROT_NONE, private | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) puts("no room for a large reservation");
    munmap(reserved, large);
    munmap(low, most);
    if (sbrk(1ul << 30) == (void *)-1) puts("no GiB more of break");
    // What nobody can have, natively too.
    void *top = (void *)0xfffffffffffff000;
    printf("%d %d %d %d\n", mmap((void *)4096, -8192ul, rw, private, -1, 0) == MAP_FAILED ? errno : 0,
           mmap(top, 8192, rw, private | MAP_FIXED, -1, 0) == MAP_FAILED ? errno : 0,
           munmap((void *)4096, -8192ul) ? errno : 0, mremap(low, 4096, -8192ul, 0) == MAP_FAILED ? errno : 0);
    unsigned long starts[64], lengths[64];
    for (int kind = 0; kind < 7; kind++) {
        int count = foreign(starts, lengths);
        for (int i = 0; i < count; i++) {
            void *at = (void *)starts[i];
            unsigned long length = lengths[i];
            switch (kind) {
            case 0: check("fixed", mmap(at, length, rw, private | MAP_FIXED, -1, 0), starts[i], length); break;
            case 1: check("if free", mmap(at, length, rw, private | MAP_FIXED_NOREPLACE, -1, 0), starts[i], length); break;
            case 2: check("hint", mmap(at, length, rw, private, -1, 0), starts[i], length); break;
            case 3: {
                void *from = mmap(0, length, rw, private, -1, 0);
                void *to = mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, at);
                check("moved", to, starts[i], length);
                break;
            }
            case 4: {
                int segment = shmget(IPC_PRIVATE, length, 0600);
                check("segment", shmat(segment, at, 0), starts[i], length);
                shmctl(segment, IPC_RMID, 0);
                break;
            }
            case 5:
                if (munmap(at, length)) puts("munmap");
                break;
            case 6:
                if (mprotect(at, length, PROT_READ) == 0) puts("what is not mapped was protected");
                break;
            }
        }
    }
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_cond_broadcast(&woken);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("%ld %ld %ld %d\n", sums[0], sums[1], sums[2], ticks > 0);
    return 0;
}
