//! `lockstep verify`: what the analysis proves holds in a run, and a rule applied wrongly is noticed.

use crate::folder::{Folder, lockstep};
use crate::marking::{drawn, has_openmp};

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

/// A thread that waits for another in a loop that only reads. A turn takes hundreds of cycles: a thread that waits for
/// long, since the machine is busy, makes thousands of turns and not millions.
const WAITING: &str = "#include <pthread.h>
#include <unistd.h>
static volatile int here, flag;
static int results[2];
#define DIVIDE __asm__ volatile(\"mov $-1, %%rax; .rept 20; xor %%edx, %%edx; div %0; .endr\" : : \"r\"(1l) : \"rax\", \"rdx\")
static void *start(void *id) {
    if (id) {
        here = 1;
        while (!flag) DIVIDE;
    } else {
        while (!here) usleep(20);
        usleep(20);
        flag = 1;
    }
    results[(long)id] = 1;
    return 0;
}
int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, start, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return results[0] != results[1];
}
";

#[test]
fn turns_that_look_like_waiting_are_kept_unless_something_else_is_said() {
    let folder = Folder::with(&[("a.c", WAITING)]);
    folder.succeed(lockstep(), &["cc", "--keep-ir", "ir", "--", "-O2", "-pthread", "-o", "a", "a.c"]);
    let executions = |arguments: &[&str]| -> u64 {
        let text = folder.succeed(lockstep(), &[&["verify", "--json", "a.bin"], arguments].concat());
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        let share = &found["shares"]["branch"];
        share["matched"].as_u64().unwrap() + share["unmatched"].as_u64().unwrap()
    };
    // On a busy machine a thread may sleep through its wait.
    let waited = (0..20).find_map(|_| {
        folder.succeed(lockstep(), &["trace", "--memory", "-o", "a.bin", "--", "./a"]);
        Some(executions(&["--spin", "keep"])).filter(|&kept| kept > 20)
    });
    let kept = waited.expect("one of twenty runs waits");
    assert_eq!(executions(&[]), kept);
    let taken = executions(&["--spin", "auto"]);
    assert!(taken < kept, "no turn was taken for waiting: {taken} of {kept}");
}

/// Threads get records with their numbers, some filled in place, some made again.
const RECORDS: &str = "#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#define N 8
struct record { pthread_t thread; int id, count; const int *table; long sum; };
static struct record records[N];
static int table[64], out[N];
static void *start(void *argument) {
    struct record *record = argument;
    long sum = 0;
    for (int i = 0; i < record->count; i++) sum += record->table[i];
    if (record->count > 30) sum += table[record->id];
    out[record->id] = (int)sum;
    record->sum = sum;
    return 0;
}
static void *other(void *argument) {
    struct record *record = argument;
    out[record->id] += record->table[3 * record->id];
    free(record);
    return 0;
}
int main(int count, char **arguments) {
    pthread_t threads[N];
    (void)arguments;
    for (int i = 0; i < 64; i++) table[i] = i * 7919;
    for (int i = 0; i < N; i++) {
        records[i].id = i;
        records[i].count = 40 * count;
        records[i].table = table;
        pthread_create(&records[i].thread, 0, start, &records[i]);
    }
    for (int i = 0; i < N; i++) pthread_join(records[i].thread, 0);
    for (int i = 0; i < N; i++) {
        struct record *record = malloc(sizeof *record);
        record->id = i;
        record->table = table;
        pthread_create(&threads[i], 0, other, record);
    }
    for (int i = 0; i < N; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < N; i++) printf(\"%d\\n\", out[i]);
    return 0;
}
";

#[test]
fn what_threads_find_in_their_records_holds_in_a_run() {
    let folder = Folder::with(&[("a.c", RECORDS)]);
    folder.succeed(lockstep(), &["cc", "--keep-ir", "ir", "--", "-O2", "-pthread", "-o", "a", "a.c"]);
    folder.succeed(lockstep(), &["trace", "--memory", "-o", "a.bin", "--", "./a"]);
    let text = folder.succeed(lockstep(), &["verify", "--json", "--region", "all", "a.bin"]);
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["violations"].as_array().unwrap().len(), 0);
    let claimed = |about: &str, class: &str| {
        let all = found["instructions"].as_array().unwrap().iter();
        all.filter(|i| i["about"] == about && i["claimed"] == class && i["was"] == class).count()
    };
    assert!(claimed("branch", "uniform") >= 4, "{text}");
    assert!(claimed("access", "affine") >= 6, "{text}");
}

/// A thread says between two barriers how far all of them go behind the second.
const PHASES: &str = "#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_barrier_t all;
static long count, threads, table[64], out[64];
static void *work(void *argument) {
    long id = (long)argument, sum = 0;
    for (int phase = 0; phase < 3; phase++) {
        if (id == 0) count = 10 + 7 * phase;
        pthread_barrier_wait(&all);
        for (long i = 0; i < count; i++) sum += table[i] * (id + 1);
        pthread_barrier_wait(&all);
    }
    out[id] = sum;
    return 0;
}
int main(int argc, char **argv) {
    pthread_t handles[64];
    threads = argc > 1 ? atol(argv[1]) : 8;
    if (threads > 64) return 1;
    for (int i = 0; i < 64; i++) table[i] = i * 7919;
    pthread_barrier_init(&all, NULL, (unsigned)threads);
    for (long i = 1; i < threads; i++) pthread_create(&handles[i], NULL, work, (void *)i);
    work(NULL);
    for (long i = 1; i < threads; i++) pthread_join(handles[i], NULL);
    for (long i = 0; i < threads; i++) printf(\"%ld\\n\", out[i]);
    return 0;
}
";

#[test]
fn what_is_proved_of_memory_between_barriers_holds_in_a_run() {
    let folder = Folder::with(&[("a.c", PHASES)]);
    folder.succeed(lockstep(), &["cc", "--keep-ir", "ir", "--", "-O2", "-pthread", "-o", "a", "a.c"]);
    folder.succeed(lockstep(), &["trace", "--memory", "-o", "a.bin", "--", "./a"]);
    let text = folder.succeed(lockstep(), &["verify", "--json", "a.bin"]);
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["violations"].as_array().unwrap().len(), 0);
    let branches = found["instructions"].as_array().unwrap().iter().filter(|i| i["about"] == "branch");
    let uniform = branches.filter(|i| i["claimed"] == "uniform" && i["was"] == "uniform").count();
    assert!(uniform >= 6, "{text}");
}

/// Builds a program so that its loops stay whole, and records it.
fn recorded_whole(folder: &Folder, threads: u64) {
    let words = ["-O2", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-w", "-fopenmp"];
    folder.succeed(lockstep(), &[&["cc", "--keep-ir", "ir", "--"], &words[..], &["-o", "a", "a.c"]].concat());
    let threads = format!("OMP_NUM_THREADS={threads}");
    let environment = [&threads, "OMP_SCHEDULE=dynamic,3", "OMP_WAIT_POLICY=passive", "KMP_BLOCKTIME=1", lockstep()];
    folder.succeed("env", &[&environment[..], &["trace", "--memory", "-o", "a.bin", "--", "./a"]].concat());
}

#[test]
fn what_is_proved_of_iterations_holds_in_a_run_and_a_wrong_rule_is_noticed() {
    let source = "#include <stdio.h>
static int out[400], weights[400], rounds = 3;
int main(int count, char **arguments) {
    for (int i = 0; i < 400; i++) weights[i] = i * 37 % 101;
    for (int t = 0; t < rounds; t++) {
#pragma omp parallel for schedule(dynamic, 5) num_threads(3)
        for (int i = 0; i < 400; i++) out[i] = weights[399 - i] + t;
#pragma omp parallel for schedule(static, 7) num_threads(4)
        for (int i = 0; i < 100; i += 2) if (count < 9) out[4 * i + 1] += i * count;
    }
    for (int i = 0; i < 400; i++) printf(\"%d\\n\", out[i]);
    (void)arguments;
}
";
    let folder = Folder::with(&[("a.c", source)]);
    if !has_openmp(&folder) {
        return;
    }
    recorded_whole(&folder, 4);
    let words = ["verify", "--lanes", "iterations", "--json", "a.bin"];
    let found: serde_json::Value = serde_json::from_str(&folder.succeed(lockstep(), &words)).unwrap();
    assert_eq!(found["violations"].as_array().unwrap().len(), 0);
    assert!(found["shares"]["access"]["tested_fetches"].as_u64().unwrap() > 50, "{}", found["shares"]);
    let instructions = found["instructions"].as_array().unwrap();
    let affine = instructions.iter().filter(|i| i["about"] == "access" && i["claimed"] == "affine").count();
    assert!(affine >= 3, "{affine} of {}", instructions.len());
    let broken = folder.run(lockstep(), &["verify", "--lanes", "iterations", "--broken", "MLCA", "a.bin"]);
    assert_eq!(broken.status.code(), Some(CONTRADICTED));
}

#[test]
fn what_is_proved_of_iterations_of_drawn_programs_holds() {
    let count = if std::env::var_os("LOCKSTEP_WHOLE").is_some() { 100 } else { 5 };
    for number in 0..count {
        let (source, threads) = drawn(number);
        let folder = Folder::with(&[("a.c", &source)]);
        if !has_openmp(&folder) {
            return;
        }
        recorded_whole(&folder, threads);
        let run = folder.run(lockstep(), &["verify", "--lanes", "iterations", "--by", "program", "a.bin"]);
        let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert_eq!(run.status.code(), Some(0), "program {number}: {said}\n{source}");
    }
}
