/* Two sorted lists merged with duplicates left out, then their common values counted. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 *a = mem, *b = mem + 128, *out = mem + 256, na = 60 + (lane & 15), nb = 60 + (lane >> 2), i = 0, j = 0, n = 0, s = 0;
    for (u32 k = 0; k < 80; k++) {
        a[k] = (k > 0 ? a[k - 1] : 0) + (in[k * 32 + lane] & 7);
        b[k] = (k > 0 ? b[k - 1] : 0) + (in[k * 32 + lane] >> 8 & 7);
    }
    while (i < na && j < nb) {
        u32 v;
        if (a[i] < b[j]) {
            v = a[i++];
        } else if (b[j] < a[i]) {
            v = b[j++];
        } else {
            v = a[i++];
            j++;
            s++;
        }
        if (n > 0 && out[n - 1] == v)
            continue;
        out[n++] = v;
    }
    while (i < na)
        out[n++] = a[i++];
    while (j < nb)
        out[n++] = b[j++];
    return s * 256 + n + out[n / 2];
}
