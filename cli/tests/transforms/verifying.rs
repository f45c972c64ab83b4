//! `lockstep verify`: what the analysis proves holds in a run, and a rule applied wrongly is noticed.

use crate::folder::{Folder, lockstep};

/// Threads that read a table together, each its own element of another, and turn in a loop as often as they have a
/// number.
const PROGRAM: &str = "#include <pthread.h>
#include <stdio.h>
#define N 8
static int table[64], own[N], out[N];
static __attribute__((noinline)) void work(long id) {
    int sum = own[id];
    for (int i = 0; i < 40; i++) sum = sum * 3 + table[i];
    for (long i = 0; i < id; i++) sum ^= table[sum & 63];
    out[id] = sum;
}
static void *start(void *id) { work((long)id); return 0; }
int main(void) {
    pthread_t threads[N];
    for (int i = 0; i < 64; i++) table[i] = i * 7919;
    for (int i = 0; i < N; i++) own[i] = i * i;
    for (long i = 0; i < N; i++) pthread_create(&threads[i], 0, start, (void *)i);
    for (int i = 0; i < N; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < N; i++) printf(\"%d\\n\", out[i]);
    return 0;
}
";

/// What `verify` exits with where a proof is contradicted.
const CONTRADICTED: i32 = 70;

#[test]
fn what_is_proved_holds_in_a_run_and_a_wrong_rule_is_noticed() {
    let folder = Folder::with(&[("a.c", PROGRAM)]);
    folder.succeed(lockstep(), &["cc", "--keep-ir", "ir", "--", "-O2", "-pthread", "-o", "a", "a.c"]);
    folder.succeed(lockstep(), &["trace", "--memory", "-o", "a.bin", "--", "./a"]);
    let found: serde_json::Value =
        serde_json::from_str(&folder.succeed(lockstep(), &["verify", "--json", "a.bin"])).unwrap();
    assert_eq!(found["violations"].as_array().unwrap().len(), 0);
    for about in ["branch", "access"] {
        let share = &found["shares"][about];
        assert!(share["matched_share"].as_f64().unwrap() >= 0.95, "{about}: {share}");
        assert!(share["tested_fetches"].as_u64().unwrap() > 0, "{about}: {share}");
    }
    // The second loop's branch is the one that parts lanes.
    let diverged =
        found["instructions"].as_array().unwrap().iter().filter(|i| i["about"] == "branch" && i["was"] == "divergent");
    assert!(diverged.clone().count() > 0);
    assert!(diverged.into_iter().all(|i| i["claimed"] == "divergent"));
    let broken = folder.run(lockstep(), &["verify", "--broken", "GBNA", "a.bin"]);
    let said = String::from_utf8_lossy(&broken.stdout).into_owned();
    assert_eq!(broken.status.code(), Some(CONTRADICTED), "{said}");
    assert!(said.contains("VIOLATION: ") && said.contains("a.c:"), "{said}");
}

#[test]
fn a_program_without_ir_is_refused_with_the_way_out() {
    let folder = Folder::with(&[("a.c", PROGRAM)]);
    folder.succeed(lockstep(), &["cc", "--", "-O2", "-pthread", "-o", "a", "a.c"]);
    folder.succeed(lockstep(), &["trace", "--memory", "-o", "a.bin", "--", "./a"]);
    let refused = folder.run(lockstep(), &["verify", "a.bin"]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--keep-ir"));
}
