/* Three nested loops that are left early at places that depend on the lane: the innermost breaks, the middle one
 * continues or breaks, and one test leaves all three at once. Post-dominators of the breaks lie far behind them; lanes
 * could meet earlier, at the heads of the outer loops.
 *
 * A lane looks for the first (a, b, c), in the order of the loops, with a*a + b*b + c*c = 7 * lane + 29, passing over
 * rows that cannot hold it.
 *
 * The compiler chooses the instructions, so no count is stated here; lines for one compiler's build go below these
 * two.
 * expect: region kernel
 * expect: lanes 4
 */
#define PROGRAM "nested_breaks"

#include "args.h"

static long target(long lane) {
    return 7 * (lane % 16) + 29;
}

static AS_WRITTEN long kernel(long lane) {
    long sum = target(lane);
    long steps = 0;
    for (long a = 0; a < 12; a++) {
        if (a * a > sum) {
            break;
        }
        for (long b = a; b < 12; b++) {
            if (a * a + 2 * b * b > sum) {
                break;
            }
            if ((a + b + sum) % 5 == 0 && b % 2 == 0) {
                continue;
            }
            for (long c = b; c < 12; c++) {
                steps++;
                OPAQUE(steps);
                long found = a * a + b * b + c * c;
                if (found > sum) {
                    break;
                }
                if (found == sum) {
                    steps += 1000 * (144 * a + 12 * b + c);
                    goto done;
                }
            }
        }
    }
done:
    return steps;
}

/* All triples in the same order by one loop over a counter, with the rules as conditions. */
static long expected(long lane) {
    long sum = target(lane);
    long steps = 0;
    for (long triple = 0; triple < 12 * 12 * 12; triple++) {
        long a = triple / 144, b = triple / 12 % 12, c = triple % 12;
        int entered = a * a <= sum && b >= a && a * a + 2 * b * b <= sum;
        int kept = entered && ((a + b + sum) % 5 != 0 || b % 2 != 0) && c >= b;
        /* The innermost loop looks at the first c that is too large, and at none after it. */
        int looked_at = kept && (c == b || a * a + b * b + (c - 1) * (c - 1) <= sum);
        if (looked_at) {
            steps++;
            if (a * a + b * b + c * c == sum) {
                return steps + 1000 * triple;
            }
        }
    }
    return steps;
}

#include "kernel.h"
