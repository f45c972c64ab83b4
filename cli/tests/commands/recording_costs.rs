//! `trace --stats`: what a recording cost, and why.

use serde_json::Value;

use crate::support::{build, command, root, run, succeed};

/// The statistics of a recording with these options and arguments.
fn stats(folder: &std::path::Path, options: &[&str], command: &[&str]) -> Value {
    let place = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (trace, stats) = (place("trace.bin"), place("stats.json"));
    succeed("trace", &[options, &["--stats", &stats, "-o", &trace], command].concat());
    let stats: Value = serde_json::from_str(&std::fs::read_to_string(stats).unwrap()).unwrap();
    let size = std::fs::metadata(&trace).unwrap().len();
    assert_eq!(stats["trace_bytes"].as_u64(), Some(size));
    stats
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn stops_and_records_are_counted_by_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    build(&root().join("workloads/fft/fft.c"), &program, &["-O2", "-pthread", "-lm"]);
    let program = program.to_str().unwrap();
    for options in [&[][..], &["--memory"]] {
        let found = stats(folder.path(), options, &[program, "-p", "4", "-m", "14"]);
        assert_eq!((found["engine"].as_str(), number(&found["threads"])), (Some("translate"), 4));
        // All stops have a cause, but those in which nothing had to be done.
        let causes = found["stops"].as_object().unwrap().iter().filter(|(name, _)| *name != "all");
        let causes: u64 = causes.map(|(_, count)| number(count)).sum();
        let all = number(&found["stops"]["all"]);
        assert!(causes > all / 2 && causes <= all + 8, "{found}");
        // Three threads are made and end.
        assert!(number(&found["stops"]["thread"]) >= 7, "{found}");
        let kinds = ["paths", "entries", "returns", "waits", "handlers"].map(|kind| &found["records"][kind]);
        let bytes: u64 = kinds.iter().map(|kind| number(&kind["bytes"])).sum();
        assert_eq!(bytes, number(&found["records"]["bytes"]), "{found}");
        // What is entered is left, except for what ends with its thread.
        let [entries, returns] = [1, 2].map(|kind| number(&kinds[kind]["number"]));
        assert!(entries > 12 && returns <= entries + 4 && returns + 16 > entries, "{found}");
        assert!(number(&found["translated"]["instructions"]) > number(&found["translated"]["superblocks"]), "{found}");
        let seconds = |name: &str| found["seconds"][name].as_f64().unwrap();
        let parts = seconds("waiting") + seconds("translating") + seconds("reading_records");
        assert!(parts > 0.0 && parts <= seconds("wall"), "{found}");
    }
    let stepped = stats(folder.path(), &["--engine", "step", "--limit", "1000"], &["/bin/true"]);
    assert_eq!((stepped["engine"].as_str(), number(&stepped["translated"]["superblocks"])), (Some("step"), 0));
}

/// Code of one superblock that is run, and then written as it is (five times), written again (three times), protected
/// and not (twice), unmapped (twice), each time followed by another run.
const CHANGES: &str = r#"
#include <string.h>
#include <sys/mman.h>
static unsigned char *code;
static void put(int n) {
    unsigned char bytes[] = {0xb8, 0, 0, 0, 0, 0xc3}; /* mov eax, n; ret */
    memcpy(bytes + 1, &n, sizeof n);
    memcpy(code, bytes, sizeof bytes);
}
static int run(void) { return ((int (*)(void))code)(); }
static void map(void) {
    code = mmap(code, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS | (code ? MAP_FIXED : 0), -1, 0);
}
int main(void) {
    map();
    put(1);
    int sum = run();
    for (int i = 0; i < 5; i++) put(1), sum += run();
    for (int i = 0; i < 3; i++) put(2 + i), sum += run();
    for (int i = 0; i < 2; i++) {
        mprotect(code, 4096, PROT_READ | PROT_WRITE);
        mprotect(code, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
        sum += run();
    }
    for (int i = 0; i < 2; i++) munmap(code, 4096), map(), put(9 + i), sum += run();
    return sum != 1 + 5 + 9 + 8 + 19;
}"#;

#[test]
fn what_is_thrown_away_is_counted_by_cause() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("changes.c"), folder.path().join("changes"));
    std::fs::write(&source, CHANGES).unwrap();
    build(&source, &program, &["-O1"]);
    let found = stats(folder.path(), &["--no-cache"], &[program.to_str().unwrap()]);
    let (translated, thrown_away) = (&found["translated"], found["translated"]["thrown_away"].as_object().unwrap());
    let all = thrown_away.iter().filter(|(name, _)| *name != "all").map(|(_, count)| number(count)).sum::<u64>();
    assert_eq!(all, number(&thrown_away["all"]), "{found}");
    assert!(all <= number(&translated["superblocks"]) + number(&translated["revived"]), "{found}");
    for (cause, count) in [("written", 8), ("protection", 2), ("written_by_call", 0), ("shared", 0), ("renewal", 0)] {
        assert_eq!(number(&thrown_away[cause]), count, "{cause}: {found}");
    }
    // The loader maps over what it has run, too.
    assert!(number(&thrown_away["unmapped"]) >= 2, "{found}");
    assert!(number(&thrown_away["function"]) > 0, "{found}");
    // Of the twelve, those that were written as they were, or protected, have the same code, and come back.
    let [again, same, revived] = ["again", "again_the_same", "revived"].map(|name| number(&translated[name]));
    assert!(again >= 5 && again - same == 5 && revived == 7, "{found}");
}

#[test]
fn buffers_that_get_full_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    build(&root().join("workloads/radix/radix.c"), &program, &["-O2", "-pthread"]);
    let found = stats(folder.path(), &["--memory"], &[program.to_str().unwrap(), "-p", "2", "-n", "400000"]);
    // Each stop for a full buffer empties one of a MiB.
    let (full, bytes) = (number(&found["stops"]["full_buffer"]), number(&found["records"]["bytes"]));
    assert!(full > 0 && full <= bytes >> 20, "{found}");
}

#[test]
fn the_second_recording_recalls_what_the_first_has_translated() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let cache = place("cache");
    std::fs::create_dir(&cache).unwrap();
    let recalled = |options: &[&str]| {
        let (trace, stats) = (place("trace.bin"), place("stats.json"));
        let words = [options, &["--stats", &stats, "-o", &trace, "/bin/true"]].concat();
        let output = command("trace", &words).env("XDG_CACHE_HOME", &cache).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let stats: Value = serde_json::from_str(&std::fs::read_to_string(stats).unwrap()).unwrap();
        number(&stats["translated"]["recalled"])
    };
    assert_eq!(recalled(&["--no-cache"]), 0);
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 0, "nothing is written either");
    assert_eq!(recalled(&[]), 0);
    assert_eq!(recalled(&["--no-cache"]), 0);
    assert!(recalled(&[]) > 100);
    let home = place("home");
    std::fs::create_dir_all(format!("{home}/.cache")).unwrap();
    let (trace, program) = (place("trace.bin"), "/bin/true");
    let output = command("trace", &["-o", &trace, program]).env_remove("XDG_CACHE_HOME").env("HOME", &home).output();
    assert!(output.unwrap().status.success());
    assert_eq!(std::fs::read_dir(format!("{home}/.cache/lockstep")).unwrap().count(), 1);
}

#[test]
fn a_program_that_is_not_there_leaves_no_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let stats = folder.path().join("stats.json");
    let output = run("trace", &["--stats", stats.to_str().unwrap(), "/no/such/program"]);
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}
