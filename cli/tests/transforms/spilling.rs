//! What `spill:check=yes` notices in a replay: lanes that keep different values in one place of their warp's memory.

use crate::folder::{Folder, lockstep};

/// Threads wait for their turn and count, so each reads another number. Taken as if lanes loaded together
/// (`loads=simt`), which a processor's threads do not, the number is uniform, and is wrongly kept in memory of the
/// warp.
const PROGRAM: &str = "#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#define N 8
static long counter, out[N];
static sem_t turn[N + 1];
static __attribute__((noinline)) void work(long id, long a, long b, long c, long d) {
    sem_wait(&turn[id]);
    long own = counter;
    counter = own + 1;
    sem_post(&turn[id + 1]);
    long e = a * own + b, f = b * e + c, g = c * f + d, h = d * g + e;
    for (long i = 0; i < 4; i++) {
        a += e ^ f; b += f ^ g; c += g ^ h; d += h ^ a;
        e += own + i; f += e * a; g += f * b; h += g * c;
    }
    out[id] = a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ own;
}
static void *start(void *id) { work((long)id, 3, 5, 7, 11); return 0; }
int main(void) {
    pthread_t threads[N];
    for (long i = 0; i <= N; i++) sem_init(&turn[i], 0, i == 0);
    for (long i = 0; i < N; i++) pthread_create(&threads[i], 0, start, (void *)i);
    for (long i = 0; i < N; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < N; i++) printf(\"%ld\\n\", out[i]);
    return 0;
}
";

/// Accesses of shared memory, and fetches in which lanes disagreed about what they stored there.
fn shared(folder: &Folder, loads: &str) -> (u64, u64) {
    let passes = format!("spill:registers=4,allocator=aff,loads={loads},check=yes,warps=1");
    folder.succeed(lockstep(), &["cc", "--transform", &passes, "--", "-O2", "-pthread", "-o", loads, "a.c"]);
    let (trace, program) = (format!("{loads}.bin"), format!("./{loads}"));
    folder.succeed(lockstep(), &["trace", "--memory", "-o", &trace, "--", &program]);
    // A name without parameters: these would put commas into the rows.
    let cost = ["--heuristic", "minpc", "--spill-cache", "512", "--csv", "rows.csv"];
    folder.succeed(lockstep(), &[["replay", &trace].as_slice(), &cost].concat());
    let text = folder.read("rows.csv");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    assert_eq!(names.len(), values.len(), "{text}");
    let number = |name: &str| values[names.iter().position(|n| *n == name).unwrap()].parse().unwrap();
    (number("shared_accesses"), number("shared_disagreements"))
}

/// Ties what `transform` and `replay` both write down: where the warp's memory lies, and where addresses tell values.
#[test]
fn lanes_that_store_different_values_in_one_fetch_are_noticed() {
    let folder = Folder::with(&[("a.c", PROGRAM)]);
    let (accesses, disagreements) = shared(&folder, "simt");
    assert!(accesses > 0 && disagreements > 0, "{accesses} accesses, {disagreements} disagreements");
    let (accesses, disagreements) = shared(&folder, "async");
    assert!(disagreements == 0, "{accesses} accesses, {disagreements} disagreements");
}
