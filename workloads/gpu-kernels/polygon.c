/* Points in polygons: a box is tested first, then edges are crossed; a point on an edge counts at once. */
#include "kernel.h"

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 inside = 0;
    (void)mem;
    for (u32 point = 0; point < 30; point++) {
        int px = (int)(in[point * 32 + lane] >> 24) - 20, py = (int)(in[point * 32 + lane] >> 16 & 255) - 20;
        u32 corners = 3 + (point & 3), odd = 0;
        if (px < 0 || py < 0 || px > 200 || py > 200)
            continue;
        for (u32 k = 0; k < corners; k++) {
            u32 next = k + 1 == corners ? 0 : k + 1;
            int ax = (int)(in[point * 8 + k] & 255), ay = (int)(in[point * 8 + k] >> 8 & 255);
            int bx = (int)(in[point * 8 + next] & 255), by = (int)(in[point * 8 + next] >> 8 & 255);
            if ((ay > py) == (by > py))
                continue;
            int side = (bx - ax) * (py - ay) - (px - ax) * (by - ay);
            if (side == 0) {
                odd = 1;
                break;
            }
            if ((side > 0) == (by > ay))
                odd ^= 1;
        }
        if (odd)
            inside += point + 1;
    }
    return inside;
}
