/* The game of life on a small board, by rules as a chain of ifs; a board that is still ends the lane. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 *now = mem, *next = mem + 128, alive = 0;
    for (u32 i = 0; i < 100; i++)
        now[i] = in[(i * 32 + lane) % IN_WORDS] % 4 == 0;
    for (u32 turn = 0; turn < 3; turn++) {
        u32 changed = 0;
        for (u32 y = 1; y < 9; y++)
            for (u32 x = 1; x < 9; x++) {
                u32 at = y * 10 + x, n = 0;
                for (u32 k = 0; k < 9; k++)
                    if (k != 4 && now[at + (k / 3) * 10 + k % 3 - 11])
                        n++;
                if (now[at] && n < 2)
                    next[at] = 0;
                else if (now[at] && n > 3)
                    next[at] = 0;
                else if (!now[at] && n == 3)
                    next[at] = 1;
                else
                    next[at] = now[at];
                changed += next[at] != now[at];
            }
        if (changed < 4)
            return turn;
        u32 *t = now;
        now = next;
        next = t;
    }
    for (u32 i = 0; i < 100; i++)
        alive += now[i];
    return alive + 100;
}
