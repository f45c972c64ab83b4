/* Matches of queries in a reference, after MUMmerGPU: a task is a query, and for each of its places the longest match
 * is looked for in the reference's suffix tree (the loop in the middle), letter by letter (the inner loop), down the
 * tree as far as letters agree; from there it goes on for the next place by a suffix link. Queries are pieces of the
 * reference with errors, so matches end after a few letters or after fifty, and lanes leave the inner loop at different
 * times. Predicted: the body of the inner loop.
 *
 * Places that look alike and do not pay: a node of the tree, where the next edge is taken; the suffix link; a match
 * that is long enough to be kept; the loop over a query's places.
 *
 * The check compares letters, from every place of a query with every place of the reference. */
#define PROGRAM "mummer"
#define TASKS 256

#include "../../include/tasks.h"

enum { LETTERS = 4, REFERENCE = 512, MOST = 64, LEAST_SIZE = 12, LEAST = 6, END = LETTERS, QUERY_END = LETTERS + 1 };

static unsigned char reference[REFERENCE + 1];

#include "../../include/suffix_tree.h"

static struct tree tree;

static struct query {
    unsigned char letters[MOST + 1], size, lengths[MOST];
    unsigned short places[MOST];
} *queries;

static void prepare(void) {
    uint64_t seed = seed_of(0);
    for (unsigned i = 0; i < REFERENCE; i++) {
        /* Repeats, so that the tree is deep. */
        reference[i] = i % 64 < 30 && i >= 64 ? reference[i - 61] : (unsigned char)(drawn_bits(&seed) % LETTERS);
    }
    reference[REFERENCE] = END;
    grow(&tree);
    queries = zeroed(PROGRAM, (size_t)tasks, sizeof *queries);
    for (long task = 0; task < tasks; task++) {
        struct query *query = &queries[task];
        seed = seed_of((uint64_t)task);
        /* Many letters are wrong, or hardly any. */
        unsigned errors = drawn_bits(&seed) % 4 == 0 ? 60 : 4;
        query->size = (unsigned char)(LEAST_SIZE + drawn_bits(&seed) % (MOST - LEAST_SIZE));
        unsigned from = drawn_bits(&seed) % (REFERENCE - MOST);
        for (unsigned i = 0; i < query->size; i++) {
            unsigned other = drawn_bits(&seed);
            query->letters[i] = other % errors == 0 ? (unsigned char)(other >> 8 & 3) : reference[from + i];
        }
        query->letters[query->size] = QUERY_END;
    }
}

static AS_WRITTEN void kernel(long first) {
    LOCKSTEP_PREDICT(letter);
    for (long task = first; task < tasks; task += threads) {
        struct query *query = &queries[task];
        /* The node above the match, and how many letters lead to it. */
        unsigned node = ROOT, above = 0;
        for (unsigned start = 0; start < query->size; start++) {
            unsigned child = node, along = tree.size[node], length = above;
            int agree = 1;
            do {
                LOCKSTEP_RECONVERGE(letter);
                unsigned letter = query->letters[start + length];
                if (along == tree.size[child]) {
                    /* At a node: its edge for the letter. */
                    unsigned next = letter <= END ? tree.child[child][letter] : ROOT;
                    agree = next != ROOT;
                    if (agree) {
                        above = length;
                        node = child;
                        child = next;
                        along = 0;
                    }
                } else {
                    agree = letter == reference[tree.begin[child] + along];
                }
                along += (unsigned)agree;
                length += (unsigned)agree;
                END_OF_TURN(agree);
            } while (agree);
            if (along == tree.size[child]) {
                node = child;
                above = length;
            }
            if (length >= LEAST) {
                query->lengths[start] = (unsigned char)length;
                query->places[start] = tree.from[child];
            }
            above = node != ROOT ? above - 1 : 0;
            node = tree.link[node];
        }
    }
}

/* How many letters agree from a place of a query and a place of the reference on. */
static unsigned agreeing(const struct query *query, unsigned start, unsigned place) {
    unsigned length = 0;
    while (start + length < query->size && place + length < REFERENCE &&
           query->letters[start + length] == reference[place + length]) {
        length++;
    }
    return length;
}

static void check(void) {
    unsigned long all = 0;
    for (long task = 0; task < tasks; task++) {
        const struct query *query = &queries[task];
        for (unsigned start = 0; start < query->size; start++) {
            unsigned longest = 0;
            for (unsigned place = 0; place < REFERENCE; place++) {
                unsigned length = agreeing(query, start, place);
                longest = length > longest ? length : longest;
            }
            unsigned length = query->lengths[start];
            if (length != (longest >= LEAST ? longest : 0)) {
                fail(PROGRAM, "query %ld has a match of %u from %u on, not %u", task, longest, start, length);
            }
            if (length != 0 && agreeing(query, start, query->places[start]) < length) {
                fail(PROGRAM, "query %ld does not match at the place found for %u", task, start);
            }
            all += length;
        }
    }
    printf("%ld queries, matches of %lu letters\n", tasks, all);
}

RUN_TASKS
