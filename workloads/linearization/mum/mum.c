/* The longest matches of queries in a reference, by its suffix tree: a thread has a query, and looks for the longest match
 * from each of its places. It goes down the tree as far as letters agree; from where they do not it goes on for the next
 * place by the suffix link of the last node. The query ends, a node has no child for the letter, or a letter on an edge
 * differs: each leaves two loops by a jump.
 *
 * The check compares letters, from every place of a query with every place of the reference. */
#define PROGRAM "mum"

#include "group.h"

enum { LETTERS = 4, REFERENCE = 192, QUERY = 24, LEAST = 4, END = LETTERS };

DATA unsigned char reference[REFERENCE + 1];

#include "suffix_tree.h"

DATA struct tree tree;
DATA unsigned char queries[MAX_GROUPS][QUERY][BLOCK];
DATA unsigned short lengths[MAX_GROUPS][QUERY][BLOCK], places[MAX_GROUPS][QUERY][BLOCK];

static void prepare(long group) {
    if (group == 0) {
        for (unsigned i = 0; i < REFERENCE; i++) {
            /* Repeats, so that the tree is deep. */
            reference[i] = i % 64 < 40 && i >= 64 ? reference[i - 61] : (unsigned char)(scrambled(i) % LETTERS);
        }
        reference[REFERENCE] = END;
        grow(&tree);
    }
    for (unsigned thread = 0; thread < BLOCK; thread++) {
        unsigned number = scrambled(thread + 4096 * (unsigned)group + 7);
        for (unsigned i = 0; i < QUERY; i++) {
            unsigned other = scrambled(number + i);
            queries[group][i][thread] =
                other % 9 == 0 ? (unsigned char)(other >> 8 & 3) : reference[(number % (REFERENCE - QUERY)) + i];
        }
    }
}

static AS_WRITTEN void kernel(long group, unsigned thread) {
    unsigned node = ROOT, depth = 0, length;
    unsigned start = 0;
    /* ptxas (13.0, 13.5, from -O1 on) makes one loop of the two, in whose turns lanes may be at different places of their
     * queries, and yet keeps the place in a register that the warp shares: lanes skip places, and read past the query. */
    PER_LANE(start);
    AS_LOOP for (; start < QUERY; start++) {
        unsigned child = ROOT;
        for (;;) {
            if (start + depth >= QUERY) {
                goto at_node;
            }
            child = tree.child[node][queries[group][start + depth][thread]];
            if (child == ROOT) {
                goto at_node;
            }
            unsigned size = tree.size[child], begin = tree.begin[child];
            AS_LOOP for (unsigned along = 1; along < size; along++) {
                if (start + depth + along >= QUERY ||
                    queries[group][start + depth + along][thread] != reference[begin + along]) {
                    length = depth + along;
                    node = tree.link[node];
                    goto matched;
                }
            }
            node = child;
            depth += size;
        }
    at_node:
        length = depth;
        child = node;
        node = tree.link[node];
    matched:
        depth = depth > 0 ? depth - 1 : 0;
        if (length >= LEAST) {
            lengths[group][start][thread] = (unsigned short)length;
            places[group][start][thread] = tree.from[child];
        }
    }
}

/* How many letters agree from a place of a query and a place of the reference on. */
static unsigned agreeing(long group, unsigned thread, unsigned start, unsigned place) {
    unsigned length = 0;
    while (start + length < QUERY && place + length < REFERENCE &&
           queries[group][start + length][thread] == reference[place + length]) {
        length++;
    }
    return length;
}

static unsigned long check(long group) {
    unsigned long hash = 0;
    for (unsigned thread = 0; thread < BLOCK; thread++) {
        for (unsigned start = 0; start < QUERY; start++) {
            unsigned longest = 0;
            for (unsigned place = 0; place < REFERENCE; place++) {
                unsigned length = agreeing(group, thread, start, place);
                longest = length > longest ? length : longest;
            }
            unsigned length = lengths[group][start][thread];
            if (length != (longest >= LEAST ? longest : 0)) {
                fail(PROGRAM, "group %ld: query %u has a match of %u from %u on, not %u", group, thread, longest, start,
                     length);
            }
            if (length != 0 && agreeing(group, thread, start, places[group][start][thread]) < length) {
                fail(PROGRAM, "group %ld: query %u does not match at the place found", group, thread);
            }
            hash = hash * 31 + length;
        }
    }
    return hash;
}

RUN_GROUPS
