/* Tracking a point of a heart's wall through frames: a group compares the point's template with the window around each
 * place where it may be now, each thread at places of its own, and goes on from where the correlation is greatest. A
 * window may reach out of the frame, where pixels count as zero; where it is flat there is no correlation, and where it is
 * too bright by far the place is given up in the middle.
 *
 * The check knows by how much the point moves in each frame. */
#define PROGRAM "heartwall"

#include "group.h"

enum { SIDE = 40, FRAMES = 3, TEMPLATE = 7, REACH = 4, PLACES = (2 * REACH + 1) * (2 * REACH + 1), PIXELS = TEMPLATE * TEMPLATE };
enum { TOO_BRIGHT = 160 * PIXELS };

struct point {
    unsigned char frames[FRAMES][SIDE][SIDE], template[TEMPLATE][TEMPLATE];
    int x[FRAMES + 1], y[FRAMES + 1];
    float best[BLOCK];
    int best_place[BLOCK];
};

DATA struct point points[MAX_GROUPS];

/* Where the point is in a frame; before the first it is where frame -1 says. */
static inline int true_x(long group, int frame) {
    return 3 + (int)(group % 30) + (frame < 0 ? 0 : (int)(scrambled((unsigned)group * 8 + (unsigned)frame) % 3));
}
static inline int true_y(long group, int frame) {
    return 4 + (int)(group / 2 % 28) + (frame < 0 ? 0 : (int)(scrambled((unsigned)group * 8 + (unsigned)frame + 99) % 4));
}

static unsigned pixel_of_point(long group, int i, int j) {
    return 40 + scrambled((unsigned)(group * 4096 + i * 64 + j)) % 160;
}

static void prepare(long group) {
    struct point *p = &points[group];
    for (int frame = 0; frame < FRAMES; frame++) {
        for (int y = 0; y < SIDE; y++) {
            for (int x = 0; x < SIDE; x++) {
                unsigned number = scrambled((unsigned)(frame * 65536 + y * 256 + x) + 31 * (unsigned)group);
                /* Flat in one part, very bright in another, noise elsewhere. */
                int flat = x + y < 24 && number % 64 != 0, bright = x - y > 12;
                p->frames[frame][y][x] = (unsigned char)(flat ? 90 : bright ? 200 + number % 50 : number % 200);
            }
        }
        for (int i = 0; i < TEMPLATE; i++) {
            for (int j = 0; j < TEMPLATE; j++) {
                int y = true_y(group, frame) + i - TEMPLATE / 2, x = true_x(group, frame) + j - TEMPLATE / 2;
                if (y >= 0 && y < SIDE && x >= 0 && x < SIDE) {
                    unsigned noise = scrambled((unsigned)(frame + 5 * x + 311 * y)) % 8;
                    p->frames[frame][y][x] = (unsigned char)(pixel_of_point(group, i, j) + noise);
                }
            }
        }
    }
    for (int i = 0; i < TEMPLATE; i++) {
        for (int j = 0; j < TEMPLATE; j++) {
            p->template[i][j] = (unsigned char)pixel_of_point(group, i, j);
        }
    }
    p->x[0] = true_x(group, -1);
    p->y[0] = true_y(group, -1);
}

static AS_WRITTEN void kernel(long group, unsigned thread) {
    struct point *p = &points[group];
    AS_LOOP for (int frame = 0; frame < FRAMES; frame++) {
        float best = -1.0f;
        int best_place = PLACES;
        AS_LOOP for (int place = (int)thread; place < PLACES; place += BLOCK) {
            int top = p->y[frame] + place / (2 * REACH + 1) - REACH - TEMPLATE / 2;
            int left = p->x[frame] + place % (2 * REACH + 1) - REACH - TEMPLATE / 2;
            long of_window = 0, of_template = 0, of_both = 0, of_windows_square = 0, of_templates_square = 0;
            AS_LOOP for (int i = 0; i < TEMPLATE; i++) {
                AS_LOOP for (int j = 0; j < TEMPLATE; j++) {
                    int y = top + i, x = left + j;
                    long other = p->template[i][j], pixel;
                    if (y < 0 || y >= SIDE || x < 0 || x >= SIDE) {
                        pixel = 0;
                    } else {
                        pixel = p->frames[frame][y][x];
                    }
                    of_window += pixel;
                    if (of_window > TOO_BRIGHT) {
                        goto next_place;
                    }
                    of_windows_square += pixel * pixel;
                    of_template += other;
                    of_templates_square += other * other;
                    of_both += pixel * other;
                }
            }
            long covariance = PIXELS * of_both - of_window * of_template;
            long window_variance = PIXELS * of_windows_square - of_window * of_window;
            long template_variance = PIXELS * of_templates_square - of_template * of_template;
            if (covariance <= 0 || window_variance == 0) {
                continue;
            }
            /* The square of the correlation. */
            float found = (float)covariance / (float)window_variance * ((float)covariance / (float)template_variance);
            if (found > best || (found == best && place < best_place)) {
                best = found;
                best_place = place;
            }
        next_place:;
        }
        p->best[thread] = best;
        p->best_place[thread] = best_place;
        meet(group);
        if (thread == 0) {
            AS_LOOP for (unsigned other = 1; other < BLOCK; other++) {
                if (p->best[other] > best || (p->best[other] == best && p->best_place[other] < best_place)) {
                    best = p->best[other];
                    best_place = p->best_place[other];
                }
            }
            p->y[frame + 1] = p->y[frame] + best_place / (2 * REACH + 1) - REACH;
            p->x[frame + 1] = p->x[frame] + best_place % (2 * REACH + 1) - REACH;
        }
        meet(group);
    }
}

static unsigned long check(long group) {
    const struct point *p = &points[group];
    unsigned long hash = 0;
    for (int frame = 0; frame < FRAMES; frame++) {
        if (p->x[frame + 1] != true_x(group, frame) || p->y[frame + 1] != true_y(group, frame)) {
            fail(PROGRAM, "group %ld: in frame %d the point is at %d, %d, not %d, %d", group, frame, true_x(group, frame),
                 true_y(group, frame), p->x[frame + 1], p->y[frame + 1]);
        }
        hash = hash * 1024 + (unsigned long)(p->x[frame + 1] * 32 + p->y[frame + 1]);
    }
    return hash;
}

RUN_GROUPS
