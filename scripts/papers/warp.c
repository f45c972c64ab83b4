/* The warp of ptx.py: what stands in comments of one word is put in there. Prints the instructions that warps issued,
 * those of lanes, and how often lanes that were asked together had come in several groups; status 3: lanes wait for
 * ever. WARP_SEED: which group goes on is any; else it is the one at the lowest block. */
#define main main_of_source
#include /* SOURCE */
#undef main
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LANES for (int l = 0; l < 32; l++) if (mask >> l & 1)

static inline double as_double(uint64_t bits) { double value; __builtin_memcpy(&value, &bits, 8); return value; }
static inline float as_float(uint32_t bits) { float value; __builtin_memcpy(&value, &bits, 4); return value; }
static inline uint64_t as_uint64(double value) { uint64_t bits; __builtin_memcpy(&bits, &value, 8); return bits; }
static inline uint32_t as_uint32(float value) { uint32_t bits; __builtin_memcpy(&bits, &value, 4); return bits; }

/* REGISTERS */
/* DATA */
static unsigned char local[32][/* LOCAL */] __attribute__((aligned(16)));
static uint64_t first[32];
static const int meets[] = {/* MEETS */};
static const int yields[] = {/* YIELDS */};
enum { COUNT = /* BLOCKS */ };

/* Lanes that parted at a branch, and wait for each other at `target`. */
struct region { int target; uint32_t participants, waiting; struct region *outer; };
struct group { int block; uint32_t mask; struct region *region; };

static struct group ready[64];
static int groups;
static uint32_t asks[32], holds[32], answers[32], at_vote;
static int vote_of[32];
static struct region *region_of[32];
static uint64_t warp_instructions, thread_instructions, apart, seed;

static void leave(uint32_t mask, struct region *region);

static void add(int block, uint32_t mask, struct region *region) {
    /* Whoever comes to where a region ends waits for its others. */
    while (region && block == region->target) {
        region->waiting |= mask;
        if (region->waiting != region->participants) return;
        mask = region->waiting;
        region = region->outer;
    }
    if (mask && block < COUNT && yields[block]) {
        leave(mask, region);
        region = NULL;
        for (int i = 0; i < groups; i++) if (ready[i].block == block) { ready[i].mask |= mask; return; }
    }
    if (mask) ready[groups++] = (struct group){block, mask, region};
}

static void leave(uint32_t mask, struct region *region) {
    for (; region; region = region->outer) {
        region->participants &= ~mask;
        uint32_t waiting = region->waiting;
        if (waiting && waiting == region->participants) {
            add(region->target, waiting, region->outer);
            region->waiting = region->participants = 0;
        }
    }
}

static void vote(uint32_t mask, struct region *region, int block) {
    at_vote |= mask;
    LANES { vote_of[l] = block; region_of[l] = region; }
    LANES {
        uint32_t who = asks[l], ballot = 0;
        int came = (who >> l & 1) && (at_vote & who) == who;
        for (int o = 0; o < 32 && came; o++) {
            if (who >> o & 1) { came = asks[o] == who && vote_of[o] == block; ballot |= (holds[o] != 0) << o; }
        }
        if (!came) continue;
        at_vote &= ~who;
        int parts = 0;
        for (uint32_t left = who; left; parts++) {
            uint32_t same = 0;
            struct region *of = region_of[__builtin_ctz(left)];
            for (int o = 0; o < 32; o++) if ((left >> o & 1) && region_of[o] == of) { same |= 1u << o; answers[o] = ballot; }
            left &= ~same;
            ready[groups++] = (struct group){COUNT + block, same, of};
        }
        apart += parts > 1;
    }
}

static void run(struct group group) {
    uint32_t mask = group.mask, taken = 0;
    struct region *region = group.region;
    int yes = 0, no = 0;
    uint64_t weight = 0;
    switch (group.block) {
/* CODE */
    }
    warp_instructions += weight;
    thread_instructions += weight * (uint64_t)__builtin_popcount(mask);
    if (taken == mask || taken == 0) { add(taken ? yes : no, mask, region); return; }
    int target = meets[group.block % COUNT];
    if (target >= 0) {
        struct region *inner = malloc(sizeof *inner);
        *inner = (struct region){target, mask, 0, region};
        region = inner;
    }
    add(no, mask & ~taken, region);
    add(yes, taken, region);
}

/* Lanes that yield go on when no others can. */
static int order(int block) {
    return block < COUNT && yields[block] ? COUNT + block : block % COUNT;
}

int main(int count, char **arguments) {
    int warps = count > 1 ? atoi(arguments[1]) : 1;
    tasks = count > 2 ? atol(arguments[2]) : tasks;
    threads = 32L * warps;
    const char *any = getenv("WARP_SEED");
    seed = any ? strtoull(any, 0, 10) * 2 + 1 : 0;
    prepare();
    for (int warp = 0; warp < warps; warp++) {
        for (int l = 0; l < 32; l++) first[l] = 32u * (unsigned)warp + (unsigned)l;
        add(0, ~0u, NULL);
        while (groups) {
            int next = 0;
            for (int i = 1; i < groups; i++) if (order(ready[i].block) < order(ready[next].block)) next = i;
            if (seed) { seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17; next = (int)(seed >> 8 & 0xffffff) % groups; }
            struct group group = ready[next];
            ready[next] = ready[--groups];
            run(group);
        }
        if (at_vote) { fprintf(stderr, "lanes %x wait for ever\n", at_vote); return 3; }
    }
    check();
    printf("counts %llu %llu %llu\n", (unsigned long long)warp_instructions, (unsigned long long)thread_instructions, (unsigned long long)apart);
    return 0;
}
