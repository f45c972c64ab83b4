/* Keys by their hashes, after MeiyaMD5: a task is a phrase that is made of a few words or many (the prolog) and hashed
 * by MD5, 64 bytes at a time (the inner loop, 1 to 12 turns); the hash is looked for among those that are wanted (the
 * epilog). Few phrases are long, so lanes leave the inner loop at different times. Predicted: the body of the inner
 * loop.
 *
 * Places that look alike and do not pay: the four kinds of rounds, which all lanes run as often; the last bytes and the
 * length behind a phrase; the words a phrase is made of; a slot of the table that is taken, and what was found.
 *
 * The check hashes each phrase again, at once and bit by bit as the standard says it, and compares that with three
 * known hashes. */
#define PROGRAM "meiyamd5"
#define TASKS 512

#include "../../include/tasks.h"

enum { BLOCK = 64, MOST_BLOCKS = 12, MOST = BLOCK * MOST_BLOCKS, SLOTS = 256, WANTED = 64, WORDS = 16 };

static const char *const words[WORDS] = {"lane", "warp", "the", "of",  "barrier", "loop", "a",   "turn",
                                         "wait", "for",  "key", "and", "branch",  "join", "all", "four"};
static uint32_t sines[64];
static const unsigned char shifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

struct hash {
    uint32_t word[4];
};

static struct {
    struct hash hash;
    int is_taken;
} wanted[SLOTS];
static struct {
    struct hash hash;
    int size, is_found;
} *results;
/* Each thread's phrase, as 32-bit words. */
static uint32_t phrases[MAX_THREADS][MOST / 4];

/* Makes the phrase of a task, and says how many bytes it has. */
static int make_phrase(long task, unsigned char *phrase) {
    uint64_t seed = seed_of((uint64_t)task);
    unsigned kind = drawn_bits(&seed) % 16;
    int count = kind == 0 ? 90 : kind < 3 ? 40 : 1 + (int)(kind % 4), size = 0;
    for (int i = 0; i < count; i++) {
        const char *word = words[drawn_bits(&seed) % WORDS];
        while (*word != 0) {
            phrase[size++] = (unsigned char)*word++;
        }
        phrase[size++] = ' ';
    }
    return size;
}

static struct hash plain_hash(const unsigned char *bytes, int size);

static void prepare(void) {
    results = zeroed(PROGRAM, (size_t)tasks, sizeof *results);
    for (int i = 0; i < 64; i++) {
        sines[i] = (uint32_t)(int64_t)floor(fabs(sin(i + 1)) * 0x1p32);
    }
    for (int i = 0; i < WANTED; i++) {
        unsigned char phrase[MOST];
        int size = make_phrase(7 * (long)i, phrase);
        struct hash hash = plain_hash(phrase, size);
        unsigned slot = hash.word[0] % SLOTS;
        while (wanted[slot].is_taken) {
            slot = (slot + 1) % SLOTS;
        }
        wanted[slot].hash = hash;
        wanted[slot].is_taken = 1;
    }
}

static inline __attribute__((always_inline)) uint32_t rotated(uint32_t word, int by) {
    return word << by | word >> (32 - by);
}

static AS_WRITTEN void kernel(long first) {
    uint32_t *phrase = phrases[first];
    unsigned char *bytes = (unsigned char *)phrase;
    LOCKSTEP_PREDICT(block);
    for (long task = first; task < tasks; task += threads) {
        int size = make_phrase(task, bytes), blocks = (size + 8) / BLOCK + 1;
        /* A one, zeroes, and the length in bits. */
        bytes[size] = 0x80;
        for (int i = size + 1; i < blocks * BLOCK; i++) {
            bytes[i] = 0;
        }
        phrase[blocks * 16 - 2] = (uint32_t)size * 8;
        uint32_t h0 = 0x67452301, h1 = 0xefcdab89, h2 = 0x98badcfe, h3 = 0x10325476;
        for (int block = 0; block < blocks; block++) {
            LOCKSTEP_RECONVERGE(block);
            const uint32_t *word = phrase + 16 * block;
            uint32_t a = h0, b = h1, c = h2, d = h3;
            for (int i = 0; i < 64; i++) {
                uint32_t mixed;
                int at;
                if (i < 16) {
                    mixed = d ^ (b & (c ^ d));
                    at = i;
                } else if (i < 32) {
                    mixed = c ^ (d & (b ^ c));
                    at = (5 * i + 1) % 16;
                } else if (i < 48) {
                    mixed = b ^ c ^ d;
                    at = (3 * i + 5) % 16;
                } else {
                    mixed = c ^ (b | ~d);
                    at = 7 * i % 16;
                }
                uint32_t next = b + rotated(a + mixed + sines[i] + word[at], shifts[i / 16][i % 4]);
                a = d;
                d = c;
                c = b;
                b = next;
            }
            h0 += a;
            h1 += b;
            h2 += c;
            h3 += d;
        }
        struct hash hash = {{h0, h1, h2, h3}};
        unsigned slot = h0 % SLOTS;
        int is_found = 0;
        while (wanted[slot].is_taken) {
            if (memcmp(&wanted[slot].hash, &hash, sizeof hash) == 0) {
                is_found = 1;
                break;
            }
            slot = (slot + 1) % SLOTS;
        }
        results[task].hash = hash;
        results[task].size = size;
        results[task].is_found = is_found;
    }
}

/* MD5 as its standard says it: the whole message first, then round by round with the functions' names. */
static struct hash plain_hash(const unsigned char *bytes, int size) {
    unsigned char message[MOST + BLOCK] = {0};
    uint64_t bits = 8 * (uint64_t)size;
    int blocks = (size + 8) / BLOCK + 1;
    memcpy(message, bytes, (size_t)size);
    message[size] = 1 << 7;
    for (int i = 0; i < 8; i++) {
        message[blocks * BLOCK - 8 + i] = (unsigned char)(bits >> 8 * i);
    }
    struct hash hash = {{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
    for (int block = 0; block < blocks; block++) {
        struct hash now = hash;
        for (int round = 0; round < 64; round++) {
            uint32_t *v = now.word, x = v[(65 - round) % 4], y = v[(66 - round) % 4], z = v[(67 - round) % 4], sum = 0;
            for (int bit = 0; bit < 32; bit++) {
                unsigned p = x >> bit & 1, q = y >> bit & 1, r = z >> bit & 1, f;
                f = round < 16 ? (p ? q : r) : round < 32 ? (r ? p : q) : round < 48 ? (p + q + r) % 2 : q ^ (p | !r);
                sum |= (uint32_t)f << bit;
            }
            static const int step[4] = {1, 5, 3, 7}, offset[4] = {0, 1, 5, 0};
            int at = (step[round / 16] * round + offset[round / 16]) % 16;
            const unsigned char *w = message + block * BLOCK + 4 * at;
            sum += w[0] | (uint32_t)w[1] << 8 | (uint32_t)w[2] << 16 | (uint32_t)w[3] << 24;
            sum += v[(64 - round) % 4] + (uint32_t)(int64_t)floor(fabs(sin(round + 1)) * 0x1p32);
            int by = shifts[round / 16][round % 4];
            v[(64 - round) % 4] = x + (sum << by | sum >> (32 - by));
        }
        for (int i = 0; i < 4; i++) {
            hash.word[i] += now.word[i];
        }
    }
    return hash;
}

static void check(void) {
    static const struct {
        const char *text;
        uint32_t first;
    } known[] = {{"", 0xd98c1dd4}, {"abc", 0x98500190}, {"message digest", 0x7d696bf9}};
    for (int i = 0; i < 3; i++) {
        struct hash hash = plain_hash((const unsigned char *)known[i].text, (int)strlen(known[i].text));
        if (hash.word[0] != known[i].first) {
            fail(PROGRAM, "\"%s\" has a hash that begins with %08x, not %08x", known[i].text, hash.word[0],
                 known[i].first);
        }
    }
    uint32_t all = 0;
    long found = 0;
    for (long task = 0; task < tasks; task++) {
        unsigned char phrase[MOST];
        int size = make_phrase(task, phrase);
        struct hash hash = plain_hash(phrase, size);
        if (size != results[task].size || memcmp(&hash, &results[task].hash, sizeof hash) != 0) {
            fail(PROGRAM, "phrase %ld has the hash %08x…, not %08x…", task, results[task].hash.word[0], hash.word[0]);
        }
        if (task % 7 == 0 && task / 7 < WANTED && !results[task].is_found) {
            fail(PROGRAM, "phrase %ld is wanted and was not found", task);
        }
        all = all * 31 + hash.word[0];
        found += results[task].is_found;
    }
    printf("%ld phrases, %ld found; hash %08x\n", tasks, found, all);
}

RUN_TASKS
