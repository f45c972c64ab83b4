/* Runs the kernel of a program on an NVIDIA GPU: the program's own data and check, a kernel from a file of PTX or machine
 * code, and the driver's library, found when it runs. papers/on_gpu.py compiles it with
 *
 * - SOURCE: the file of the program, for the processor;
 * - THREADS_A_BLOCK, and of a program of tasks.h TASKS_A_LANE and LANES_OF_GPU;
 * - GLOBALS: the variables that the kernel has in the module, as {"name", &name, sizeof name}, …
 *
 *     program KERNEL [LAUNCHES]
 *
 * runs it LAUNCHES times (default 1), each time with the data as prepared, checks the results of the last, and prints the
 * registers of a thread and the time of each launch in microseconds. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *allocated(size_t count, size_t size);
#define calloc allocated
#define main program_main
#include SOURCE
#undef main
#undef calloc

typedef uint64_t device_pointer;

/* The part of the driver that is called. */
static int (*cuInit)(unsigned), (*cuDeviceGet)(int *, int), (*cuDevicePrimaryCtxRetain)(void **, int);
static int (*cuCtxSetCurrent)(void *), (*cuModuleLoadData)(void **, const void *), (*cuCtxSynchronize)(void);
static int (*cuModuleGetFunction)(void **, void *, const char *);
static int (*cuModuleGetGlobal_v2)(device_pointer *, size_t *, void *, const char *);
static int (*cuMemAlloc_v2)(device_pointer *, size_t), (*cuMemcpyHtoD_v2)(device_pointer, const void *, size_t);
static int (*cuMemcpyDtoH_v2)(void *, device_pointer, size_t), (*cuFuncGetAttribute)(int *, int, void *);
static int (*cuEventCreate)(void **, unsigned), (*cuEventRecord)(void *, void *), (*cuEventElapsedTime)(float *, void *, void *);
static int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
static int (*cuGetErrorName)(int, const char **);

static void stop(const char *what, int error) {
    const char *name = "?";
    if (cuGetErrorName) {
        cuGetErrorName(error, &name);
    }
    printf("failed %s: %s (%d)\n", what, name, error);
    exit(1);
}

#define CALL(function, ...)                                                                                            \
    do {                                                                                                               \
        int error_ = function(__VA_ARGS__);                                                                            \
        if (error_ != 0) {                                                                                             \
            stop(#function, error_);                                                                                   \
        }                                                                                                              \
    } while (0)

static void open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    if (!library) {
        printf("failed dlopen: %s\n", dlerror());
        exit(1);
    }
#define FIND(name) *(void **)&name = dlsym(library, #name)
    FIND(cuInit), FIND(cuDeviceGet), FIND(cuDevicePrimaryCtxRetain), FIND(cuCtxSetCurrent), FIND(cuModuleLoadData);
    FIND(cuCtxSynchronize), FIND(cuModuleGetFunction), FIND(cuModuleGetGlobal_v2), FIND(cuMemAlloc_v2);
    FIND(cuMemcpyHtoD_v2), FIND(cuMemcpyDtoH_v2), FIND(cuFuncGetAttribute), FIND(cuEventCreate), FIND(cuEventRecord);
    FIND(cuEventElapsedTime), FIND(cuLaunchKernel), FIND(cuGetErrorName);
    int device;
    CALL(cuInit, 0);
    CALL(cuDeviceGet, &device, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, device);
    CALL(cuCtxSetCurrent, context);
}

/* What the program allocated, and the GPU's copy of it. A pointer to it among the variables leads to the copy there. */
static struct {
    void *here;
    void *before;
    device_pointer there;
    size_t size;
} buffers[16];
static int buffer_count;

static void *allocated(size_t count, size_t size) {
    if (buffer_count == 16) {
        stop("allocated", 0);
    }
    void *here = (calloc)(count, size);
    buffers[buffer_count].here = here;
    buffers[buffer_count].size = count * size;
    CALL(cuMemAlloc_v2, &buffers[buffer_count++].there, count * size);
    return here;
}

static const struct {
    const char *name;
    void *here;
    size_t size;
} variables[] = {GLOBALS{NULL, NULL, 0}};

static void copy(void *module, int to_gpu) {
    for (int i = 0; i < buffer_count; i++) {
        if (to_gpu) {
            CALL(cuMemcpyHtoD_v2, buffers[i].there, buffers[i].here, buffers[i].size);
        } else {
            CALL(cuMemcpyDtoH_v2, buffers[i].here, buffers[i].there, buffers[i].size);
        }
    }
    for (int i = 0; variables[i].name; i++) {
        device_pointer there, held = 0;
        size_t size;
        const void *from = variables[i].here;
        CALL(cuModuleGetGlobal_v2, &there, &size, module, variables[i].name);
        if (size != variables[i].size) {
            stop(variables[i].name, (int)size);
        }
        int is_pointer = 0;
        for (int k = 0; k < buffer_count && size == 8; k++) {
            if (memcmp(from, &buffers[k].here, 8) == 0) {
                held = buffers[k].there, from = &held, is_pointer = 1;
            }
        }
        if (to_gpu) {
            CALL(cuMemcpyHtoD_v2, there, from, size);
        } else if (!is_pointer) {
            CALL(cuMemcpyDtoH_v2, variables[i].here, there, size);
        }
    }
}

/* The data as prepared are kept, for the next launch. */
static void keep(int again) {
    static void *kept[sizeof variables / sizeof *variables];
    for (int i = 0; i < buffer_count; i++) {
        if (!buffers[i].before) {
            buffers[i].before = memcpy((calloc)(1, buffers[i].size), buffers[i].here, buffers[i].size);
        } else if (again) {
            memcpy(buffers[i].here, buffers[i].before, buffers[i].size);
        }
    }
    for (int i = 0; variables[i].name; i++) {
        if (!kept[i]) {
            kept[i] = memcpy((calloc)(1, variables[i].size), variables[i].here, variables[i].size);
        } else if (again) {
            memcpy(variables[i].here, kept[i], variables[i].size);
        }
    }
}

int main(int count, char **words) {
    int launches = count > 2 ? atoi(words[2]) : 1;
    FILE *file = count > 1 ? fopen(words[1], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "usage: %s KERNEL [LAUNCHES]\n", words[0]);
        return 2;
    }
    char *code = (calloc)(1, 64 << 20);
    if (fread(code, 1, (64 << 20) - 1, file) == 0) {
        stop("fread", 0);
    }
    open_driver();
    void *module, *function, *begin, *end;
    CALL(cuModuleLoadData, &module, code);
    int registers, grid, block = THREADS_A_BLOCK;
#ifdef TASKS_A_LANE
    threads = LANES_OF_GPU, tasks = threads * TASKS_A_LANE, grid = (int)(threads / THREADS_A_BLOCK);
    prepare();
    CALL(cuModuleGetFunction, &function, module, "kernel");
#else
    grid = MAX_GROUPS;
    for (long group = 0; group < MAX_GROUPS; group++) {
        prepare(group);
    }
    CALL(cuModuleGetFunction, &function, module, "run_kernel");
#endif
    CALL(cuFuncGetAttribute, &registers, 4, function);
    CALL(cuEventCreate, &begin, 0);
    CALL(cuEventCreate, &end, 0);
    printf("registers %d us", registers);
    keep(0);
    for (int i = 0; i < launches; i++) {
        float milliseconds;
        keep(1);
        copy(module, 1);
        CALL(cuCtxSynchronize);
        CALL(cuEventRecord, begin, NULL);
        CALL(cuLaunchKernel, function, grid, 1, 1, block, 1, 1, 0, NULL, NULL, NULL);
        CALL(cuEventRecord, end, NULL);
        CALL(cuCtxSynchronize);
        CALL(cuEventElapsedTime, &milliseconds, begin, end);
        printf(" %.2f", 1000 * milliseconds);
        fflush(stdout);
    }
    printf("\n");
    copy(module, 0);
#ifdef TASKS_A_LANE
    check();
#else
    /* A check may take long: 1024 of the groups. */
    for (long group = 0; group < MAX_GROUPS; group += MAX_GROUPS > 1024 ? MAX_GROUPS / 1024 : 1) {
        check(group);
    }
#endif
    printf("right\n");
    return 0;
}
