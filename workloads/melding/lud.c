/* The perimeter kernel of a blocked LU decomposition: half of the group's threads solve the row right of the diagonal
 * block, the others the column below it, a column and a row of HALF numbers each. Where half a group fills whole warps,
 * no warp diverges. */
#define PROGRAM "lud"

#include "group.h"

enum { HALF = BLOCK / 2 };

struct blocks {
    float diagonal[HALF][HALF], row[HALF][HALF], column[HALF][HALF];
};

static struct blocks shared[MAX_GROUPS], memory[MAX_GROUPS];

static float entry(long group, unsigned which, unsigned i, unsigned j) {
    float value = (float)(scrambled(which * 65536 + i * 256 + j + 17 * (unsigned)group) % 1000) / 1000.0f;
    return which == 0 && i == j ? value + HALF : value;
}

static void prepare(long group) {
    for (unsigned i = 0; i < HALF; i++) {
        for (unsigned j = 0; j < HALF; j++) {
            memory[group].diagonal[i][j] = entry(group, 0, i, j);
            memory[group].row[i][j] = entry(group, 1, i, j);
            memory[group].column[i][j] = entry(group, 2, i, j);
        }
    }
}

static AS_WRITTEN void kernel(long group, unsigned t) {
    struct blocks *s = &shared[group], *m = &memory[group];
    if (t < HALF) {
        AS_LOOP for (unsigned i = 0; i < HALF / 2; i++) {
            s->diagonal[i][t] = m->diagonal[i][t];
        }
        AS_LOOP for (unsigned i = 0; i < HALF; i++) {
            s->row[i][t] = m->row[i][t];
        }
    } else {
        unsigned own = t - HALF;
        AS_LOOP for (unsigned i = HALF / 2; i < HALF; i++) {
            s->diagonal[i][own] = m->diagonal[i][own];
        }
        AS_LOOP for (unsigned i = 0; i < HALF; i++) {
            s->column[i][own] = m->column[i][own];
        }
    }
    meet(group);
    if (t < HALF) {
        AS_LOOP for (unsigned i = 1; i < HALF; i++) {
            AS_LOOP for (unsigned j = 0; j < i; j++) {
                s->row[i][t] -= s->diagonal[i][j] * s->row[j][t];
            }
        }
    } else {
        unsigned own = t - HALF;
        AS_LOOP for (unsigned i = 0; i < HALF; i++) {
            AS_LOOP for (unsigned j = 0; j < i; j++) {
                s->column[own][i] -= s->column[own][j] * s->diagonal[j][i];
            }
            s->column[own][i] /= s->diagonal[i][i];
        }
    }
    meet(group);
    if (t < HALF) {
        AS_LOOP for (unsigned i = 1; i < HALF; i++) {
            m->row[i][t] = s->row[i][t];
        }
    } else {
        unsigned own = t - HALF;
        AS_LOOP for (unsigned i = 0; i < HALF; i++) {
            m->column[i][own] = s->column[i][own];
        }
    }
}

static void compare(long group, const char *what, double product, double right) {
    double off = product - right;
    if (off > 1e-3 || off < -1e-3) {
        fail(PROGRAM, "group %ld: the %s multiplied back gives %g where %g was", group, what, product, right);
    }
}

/* The lower triangle of the diagonal block (ones on its diagonal) by the row gives the row that was; the column by the
 * upper triangle the column. */
static unsigned long check(long group) {
    const struct blocks *m = &memory[group];
    unsigned long hash = 0;
    for (unsigned i = 0; i < HALF; i++) {
        for (unsigned j = 0; j < HALF; j++) {
            double row = m->row[i][j], column = 0;
            for (unsigned k = 0; k < i; k++) {
                row += (double)m->diagonal[i][k] * m->row[k][j];
            }
            for (unsigned k = 0; k <= j; k++) {
                column += (double)m->column[i][k] * m->diagonal[k][j];
            }
            compare(group, "row", row, entry(group, 1, i, j));
            compare(group, "column", column, entry(group, 2, i, j));
            hash = hash * 31 + (unsigned long)(long)(m->row[i][j] * 1024.0f) + (unsigned long)(long)(m->column[i][j] * 1024.0f);
        }
    }
    return hash;
}

RUN_GROUPS
