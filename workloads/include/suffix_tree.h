/* A suffix tree of a text. A program defines LETTERS, REFERENCE (how long the text is), END (the letter behind the
 * text) and the array `reference` of REFERENCE + 1 letters, and includes this file after them. */
#ifndef WORKLOADS_SUFFIX_TREE_H
#define WORKLOADS_SUFFIX_TREE_H

enum { NODES = 2 * REFERENCE + 4, ROOT = 0 };

/* Node 0 is the root; a child of number 0 is none. The edge to a node has the letters from `begin` on. */
struct tree {
    unsigned short child[NODES][LETTERS + 1], begin[NODES], size[NODES], link[NODES], from[NODES];
};

static unsigned nodes;

static unsigned new_node(struct tree *tree, unsigned begin, unsigned size, unsigned from) {
    tree->begin[nodes] = (unsigned short)begin;
    tree->size[nodes] = (unsigned short)size;
    tree->from[nodes] = (unsigned short)from;
    return nodes++;
}

/* Puts the suffix that begins at `from` into the tree, letter by letter. */
static void insert(struct tree *tree, unsigned from) {
    unsigned node = ROOT, at = from;
    for (;;) {
        unsigned child = tree->child[node][reference[at]];
        if (child == 0) {
            tree->child[node][reference[at]] = (unsigned short)new_node(tree, at, REFERENCE + 1 - at, from);
            return;
        }
        unsigned along = 0;
        while (along < tree->size[child] && reference[tree->begin[child] + along] == reference[at]) {
            along++;
            at++;
        }
        if (along < tree->size[child]) {
            unsigned middle = new_node(tree, tree->begin[child], along, from);
            tree->child[node][reference[tree->begin[child]]] = (unsigned short)middle;
            tree->begin[child] = (unsigned short)(tree->begin[child] + along);
            tree->size[child] = (unsigned short)(tree->size[child] - along);
            tree->child[middle][reference[tree->begin[child]]] = (unsigned short)child;
            child = middle;
        }
        node = child;
    }
}

/* The suffix links of the inner nodes at and under one that `depth` letters lead to. */
static void set_links(struct tree *tree, unsigned node, unsigned depth) {
    unsigned to = ROOT;
    for (unsigned at = 1; at < depth; at += tree->size[to]) {
        to = tree->child[to][reference[tree->from[node] + at]];
    }
    tree->link[node] = (unsigned short)to;
    for (unsigned letter = 0; letter < LETTERS; letter++) {
        unsigned child = tree->child[node][letter];
        if (child != 0 && tree->begin[child] + tree->size[child] <= REFERENCE) {
            set_links(tree, child, depth + tree->size[child]);
        }
    }
}

/* Makes the tree of `reference`, once. */
static void grow(struct tree *tree) {
    new_node(tree, 0, 0, 0);
    for (unsigned from = 0; from <= REFERENCE; from++) {
        insert(tree, from);
    }
    set_links(tree, ROOT, 0);
}

#endif
