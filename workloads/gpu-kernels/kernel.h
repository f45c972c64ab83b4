/* The frame of a kernel: one function that each lane runs once, as a program of threads or as a kernel for a GPU.

   A kernel's file includes this and defines body(lane, in, mem): `in` holds IN_WORDS words of hash for all lanes, and
   `mem` MEM_WORDS words of the lane's own, zero at first; what it returns is the lane's result. It calls no library and
   does not recurse.

   - Compiled for x86-64 it is a program: LANES threads call kernel() once each; main prints a checksum of results.
   - Compiled for NVPTX or AMDGCN it is kernel() alone, with the lane from the hardware's thread number.
   - With -DHARNESS it is the program without body() and kernel(): these come from another file. -DRECORD makes main
     call kernel() for one lane after the other and write the blocks that each enters, as record() is told them. */
#ifndef KERNEL_H
#define KERNEL_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define IN_WORDS 4096u
#define MEM_WORDS 1024u
#ifndef LANES
#define LANES 32u
#endif

/* A hash of one word with every output bit dependent on every input bit. */
static inline u32 hash(u32 x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

/* The next number of a linear congruential generator. */
static inline u32 next_random(u32 *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state;
}

/* A float in [0, 1) of the upper bits of a word. */
static inline float unit_float(u32 x)
{
    return (float)(x >> 8) * (1.0f / 16777216.0f);
}

#ifndef HARNESS
static inline __attribute__((always_inline)) u32 body(u32 lane, const u32 *in, u32 *mem);
#endif

#if defined(__NVPTX__) || defined(__AMDGCN__)

#ifdef __NVPTX__
__attribute__((nvptx_kernel)) void kernel(const u32 *in, u32 *mem, u32 *out)
{
    u32 lane = __nvvm_read_ptx_sreg_tid_x();
#else
__attribute__((amdgpu_kernel)) void kernel(const u32 *in, u32 *mem, u32 *out)
{
    u32 lane = __builtin_amdgcn_workitem_id_x();
#endif
    out[lane] = body(lane, in, mem + lane * MEM_WORDS);
}

#else

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static u32 in_words[IN_WORDS];
static u32 mem_words[LANES * MEM_WORDS];
static u32 out_words[LANES];

#ifdef HARNESS
void kernel(const u32 *in, u32 *mem, u32 *out, u32 lane);
#else
__attribute__((noinline)) void kernel(const u32 *in, u32 *mem, u32 *out, u32 lane)
{
    out[lane] = body(lane, in, mem + lane * MEM_WORDS);
}
#endif

#ifdef RECORD

static FILE *blocks;

/* A block is entered: its number as 16 bits. */
void record(u32 block)
{
    fputc(block & 255, blocks);
    fputc(block >> 8, blocks);
}

static void run_lanes(void)
{
    for (u32 lane = 0; lane < LANES; lane++) {
        kernel(in_words, mem_words, out_words, lane);
        record(0xffff);
    }
}

#else

static void *start(void *lane)
{
    kernel(in_words, mem_words, out_words, (u32)(size_t)lane);
    return NULL;
}

static void run_lanes(void)
{
    pthread_t threads[LANES];
    for (size_t lane = 0; lane < LANES; lane++)
        if (pthread_create(&threads[lane], NULL, start, (void *)lane) != 0)
            exit(1);
    for (size_t lane = 0; lane < LANES; lane++)
        pthread_join(threads[lane], NULL);
}

#endif

int main(int argc, char **argv)
{
#ifdef RECORD
    if (argc != 2 || (blocks = fopen(argv[1], "wb")) == NULL) {
        fprintf(stderr, "usage: %s FILE (the blocks that each lane enters are written to it)\n", argv[0]);
        return 2;
    }
#else
    (void)argc, (void)argv;
#endif
    for (u32 i = 0; i < IN_WORDS; i++)
        in_words[i] = hash(i + 1);
    run_lanes();
    u32 sum = 0;
    for (u32 lane = 0; lane < LANES; lane++)
        sum = sum * 31 + out_words[lane];
    printf("%u\n", sum);
#ifdef RECORD
    return fclose(blocks) != 0;
#else
    return 0;
#endif
}

#endif
#endif
