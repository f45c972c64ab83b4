/* Items that take one of two ways in each round, as rays that hit one of two materials. LANES: each item goes through
 * all rounds. COMPACT: each round sorts the items by hand, as a program for a GPU that regroups would. */
#define ITEMS 256
#define ROUNDS 4

static unsigned char kinds[ROUNDS][ITEMS];
static unsigned state[ITEMS];

__attribute__((noipa)) static void glass(int i) {
    unsigned x = state[i];
    for (volatile int n = 0; n < 20; n++) x = x * 5 + 3;
    state[i] = x;
}

__attribute__((noipa)) static void matte(int i) {
    unsigned x = state[i];
    for (volatile int n = 0; n < 20; n++) x = (x ^ 7) + 9;
    state[i] = x;
}

int main(void) {
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < ITEMS; i++) kinds[r][i] = (i >> r / 2) & 1;
#if defined(LANES)
    for (int i = 0; i < ITEMS; i++) { // items
        for (int r = 0; r < ROUNDS; r++) {
            if (kinds[r][i]) // regroup
                matte(i);
            else
                glass(i);
        }
    }
#else
    static int sorted[ITEMS];
    for (int r = 0; r < ROUNDS; r++) {
        int n = 0;
        for (int kind = 0; kind < 2; kind++)
            for (int i = 0; i < ITEMS; i++)
                if (kinds[r][i] == kind) sorted[n++] = i;
        for (int j = 0; j < ITEMS; j++) { // sorted
            int i = sorted[j];
            if (kinds[r][i])
                matte(i);
            else
                glass(i);
        }
    }
#endif
    return 0;
}
