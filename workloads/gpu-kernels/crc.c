/* A cyclic redundancy check bit by bit, over messages of different lengths: the if is two instructions long. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 crc = ~0u, length = 8 + (in[lane] & 15);
    (void)mem;
    for (u32 i = 0; i < length; i++) {
        crc ^= in[i * 32 + lane] & 255;
        for (u32 bit = 0; bit < 8; bit++) {
            if (crc & 1)
                crc = crc >> 1 ^ 0xedb88320u;
            else
                crc >>= 1;
        }
    }
    return ~crc;
}
