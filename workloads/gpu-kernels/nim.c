/* A game of heaps: a player who can win does, the other takes by chance, until nothing is left. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 wins = 0, z = in[lane];
    for (u32 game = 0; game < 12; game++) {
        u32 player = 0, moves = 0;
        for (u32 k = 0; k < 4; k++)
            mem[k] = next_random(&z) >> 28;
        for (;;) {
            u32 sum = mem[0] ^ mem[1] ^ mem[2] ^ mem[3], any = mem[0] | mem[1] | mem[2] | mem[3];
            if (any == 0)
                break;
            moves++;
            if (player == 0 && sum != 0) {
                u32 k = 0;
                while ((mem[k] ^ sum) > mem[k])
                    k++;
                mem[k] ^= sum;
            } else {
                u32 k = next_random(&z) >> 30;
                while (mem[k] == 0)
                    k = (k + 1) & 3;
                mem[k] -= 1 + (next_random(&z) >> 8) % mem[k];
            }
            player ^= 1;
        }
        if (player == 1)
            wins += 100;
        wins += moves;
    }
    return wins;
}
