// Two loops whose sums and largest numbers the runtime puts together: it yields and tries again, and no lane waits for
// another.
#include <stdio.h>

int main(void) {
    double sum = 0;
    int most = 0;
    for (int round = 0; round < 8; round++) {
#pragma omp parallel for reduction(+ : sum) reduction(max : most)
        for (int i = 0; i < 4096; i++) {
            int turns = i % 7 + 1;
            for (int k = 0; k < turns; k++) sum += 1.0 / (i + k + 1);
            if ((i * 7919) % 4099 > most) most = (i * 7919) % 4099;
        }
#pragma omp parallel for
        for (int i = 0; i < 64; i++) __atomic_fetch_add(&most, i & 1, __ATOMIC_RELAXED);
    }
    printf("%d %d\n", sum > 0, most > 0);
}
