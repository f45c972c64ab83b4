/* The longest matches of queries in a reference, by its suffix tree: a thread has a query, and looks for the longest match
 * from each of its places. It goes down the tree as far as letters agree; from where they do not it goes on for the next
 * place by the suffix link of the last node. The query ends, a node has no child for the letter, or a letter on an edge
 * differs: each leaves two loops by a jump.
 *
 * The check compares letters, from every place of a query with every place of the reference. */
#define PROGRAM "mum"

#include "group.h"

enum { LETTERS = 4, REFERENCE = 192, QUERY = 24, LEAST = 4, NODES = 2 * REFERENCE + 4, END = LETTERS, ROOT = 0 };

/* Node 0 is the root; a child of number 0 is none. The edge to a node has the letters from `begin` on. */
struct tree {
    unsigned short child[NODES][LETTERS + 1], begin[NODES], size[NODES], link[NODES], from[NODES];
};

DATA struct tree tree;
DATA unsigned char reference[REFERENCE + 1];
DATA unsigned char queries[MAX_GROUPS][QUERY][BLOCK];
DATA unsigned short lengths[MAX_GROUPS][QUERY][BLOCK], places[MAX_GROUPS][QUERY][BLOCK];

static unsigned nodes;

static unsigned new_node(unsigned begin, unsigned size, unsigned from) {
    tree.begin[nodes] = (unsigned short)begin;
    tree.size[nodes] = (unsigned short)size;
    tree.from[nodes] = (unsigned short)from;
    return nodes++;
}

/* Puts the suffix that begins at `from` into the tree, letter by letter. */
static void insert(unsigned from) {
    unsigned node = ROOT, at = from;
    for (;;) {
        unsigned child = tree.child[node][reference[at]];
        if (child == 0) {
            tree.child[node][reference[at]] = (unsigned short)new_node(at, REFERENCE + 1 - at, from);
            return;
        }
        unsigned along = 0;
        while (along < tree.size[child] && reference[tree.begin[child] + along] == reference[at]) {
            along++;
            at++;
        }
        if (along < tree.size[child]) {
            unsigned middle = new_node(tree.begin[child], along, from);
            tree.child[node][reference[tree.begin[child]]] = (unsigned short)middle;
            tree.begin[child] = (unsigned short)(tree.begin[child] + along);
            tree.size[child] = (unsigned short)(tree.size[child] - along);
            tree.child[middle][reference[tree.begin[child]]] = (unsigned short)child;
            child = middle;
        }
        node = child;
    }
}

/* The suffix links of the inner nodes at and under one that `depth` letters lead to. */
static void set_links(unsigned node, unsigned depth) {
    unsigned to = ROOT;
    for (unsigned at = 1; at < depth; at += tree.size[to]) {
        to = tree.child[to][reference[tree.from[node] + at]];
    }
    tree.link[node] = (unsigned short)to;
    for (unsigned letter = 0; letter < LETTERS; letter++) {
        unsigned child = tree.child[node][letter];
        if (child != 0 && tree.begin[child] + tree.size[child] <= REFERENCE) {
            set_links(child, depth + tree.size[child]);
        }
    }
}

static void prepare(long group) {
    if (group == 0) {
        for (unsigned i = 0; i < REFERENCE; i++) {
            /* Repeats, so that the tree is deep. */
            reference[i] = i % 64 < 40 && i >= 64 ? reference[i - 61] : (unsigned char)(scrambled(i) % LETTERS);
        }
        reference[REFERENCE] = END;
        new_node(0, 0, 0);
        for (unsigned from = 0; from <= REFERENCE; from++) {
            insert(from);
        }
        set_links(ROOT, 0);
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
    AS_LOOP for (unsigned start = 0; start < QUERY; start++) {
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
