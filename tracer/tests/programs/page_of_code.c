/* Two pages of small functions, as a compiler makes them while the program runs: in each round one of them is written
   again, one is written as it was, and all are called: directly, by pointer, by jumps from one to the next, and one that
   lies in both pages. Now and then all is unmapped or protected in between. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { FUNCTIONS = 96, SIZE = 64, LENGTH = 8192, ACROSS = 4096 - 3 };
static unsigned char *code;
static int values[FUNCTIONS];

static unsigned char *place(int k) { return code + (k == FUNCTIONS - 1 ? ACROSS : k * SIZE); }

/* Adds a number to edi. Every third one jumps on to the next, or else returns edi. */
static void put(int k, int value) {
    unsigned char bytes[16] = {0x81, 0xc7, 0, 0, 0, 0, 0x89, 0xf8, 0xc3}; /* add edi, value; mov eax, edi; ret */
    int length = 9;
    memcpy(bytes + 2, &value, sizeof value);
    if (k % 3 == 1 && k < FUNCTIONS - 3) {
        int distance = (int)(place(k + 1) - (place(k) + 11));
        bytes[6] = 0xe9; /* jmp rel32 */
        memcpy(bytes + 7, &distance, sizeof distance);
        length = 11;
    }
    values[k] = value;
    memcpy(place(k), bytes, length);
}

static void map(void) {
    int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    code = mmap(code, LENGTH, all, MAP_PRIVATE | MAP_ANONYMOUS | (code ? MAP_FIXED : 0), -1, 0);
}

int main(void) {
    unsigned sum = 0;
    map();
    for (int k = 0; k < FUNCTIONS; k++)
        if (k != ACROSS / SIZE && k != ACROSS / SIZE + 1) put(k, k);
    for (int round = 0; round < 40; round++) {
        int changed = round * 7 % 60, same = round * 11 % 60;
        put(changed, values[changed] + round);
        if (round % 2) put(same, values[same]);
        if (round % 5 == 4) put(FUNCTIONS - 1, round);
        if (round % 8 == 7) {
            mprotect(code, LENGTH, PROT_READ | PROT_WRITE);
            mprotect(code, LENGTH, PROT_READ | PROT_WRITE | PROT_EXEC);
        }
        if (round == 20) {
            static unsigned char kept[LENGTH];
            memcpy(kept, code, LENGTH);
            munmap(code, LENGTH);
            map();
            memcpy(code, kept, LENGTH);
        }
        for (int k = 0; k < FUNCTIONS; k++)
            if (k != ACROSS / SIZE && k != ACROSS / SIZE + 1) sum = sum * 31 + ((int (*)(int))place(k))(round);
    }
    printf("%u\n", sum);
    return 0;
}
