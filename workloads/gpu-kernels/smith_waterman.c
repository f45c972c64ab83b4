/* Cells of Smith and Waterman's alignment: a maximum of four, and the place of the best. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    int *row = (int *)mem, best = 0;
    u32 place = 0;
    for (u32 i = 1; i <= 20; i++) {
        int diagonal = 0;
        for (u32 j = 1; j <= 20; j++) {
            int above = row[j], h;
            if ((in[lane * 20 + i] & 3) == (in[lane * 20 + j + 900] & 3))
                h = diagonal + 3;
            else
                h = diagonal - 2;
            if (above - 2 > h)
                h = above - 2;
            if (row[j - 1] - 2 > h)
                h = row[j - 1] - 2;
            if (h < 0)
                h = 0;
            if (h > best) {
                best = h;
                place = i * 32 + j;
            }
            diagonal = above;
            row[j] = h;
        }
    }
    return (u32)best * 1024 + place;
}
