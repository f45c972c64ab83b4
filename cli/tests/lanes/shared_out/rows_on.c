// Each row is gone through from the diagonal on: where a recording ends before any thread's share does, the outer loop
// is still the one whose turns are the iterations. Right, of a whole recording: 4,096 lanes.
#include <stdio.h>

enum { ROWS = 4096 };
static float out[ROWS];

int main(int argc, char **argv) {
    int every = argc + 4;
#pragma omp parallel for SCHEDULE
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < 200; k++)
            if ((i + k) % every == 0)
                for (int j = 0; j < 20; j++) out[i] += j * k;
    printf("%g\n", out[7]);
}
