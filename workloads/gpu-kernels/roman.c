/* Numbers written with Roman digits, then read back: loops over units with subtractive pairs. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    for (u32 i = 0; i < 20; i++) {
        u32 n = in[i * 32 + lane] % 3000, v = n, length = 0, unit = 1000, read = 0;
        while (v > 0) {
            while (v >= unit) {
                mem[length++] = unit;
                v -= unit;
            }
            u32 small = unit == 1000 || unit == 500 ? 100 : unit == 100 || unit == 50 ? 10 : 1;
            if (unit > 1 && v >= unit - small) {
                mem[length++] = small;
                mem[length++] = unit;
                v -= unit - small;
            }
            unit = unit == 1000 ? 500 : unit == 500 ? 100 : unit == 100 ? 50 : unit == 50 ? 10 : unit == 10 ? 5 : 1;
        }
        for (u32 k = 0; k < length; k++) {
            if (k + 1 < length && mem[k] < mem[k + 1])
                read -= mem[k];
            else
                read += mem[k];
        }
        s += length + (read != n ? 1000 : 0);
    }
    return s;
}
