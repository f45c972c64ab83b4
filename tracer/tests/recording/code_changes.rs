//! Code that changes under running threads: what is recorded is what runs natively.

use std::process::Command;

use crate::support::{compile, is_whole, record};

/// Ways of `code_taken_away.c` in which `step` does as well.
const WAYS: [&str; 18] = [
    "discarded",
    "discarded-copy",
    "discarded-fixed",
    "removed",
    "freed",
    "freed-only",
    "advised",
    "moved-in-file",
    "written-to-file",
    "written-to-file-private",
    "copied-to-file",
    "written-by-call",
    "not-executable",
    "not-executable-view",
    "runs-on-into-nothing",
    "runs-on-into-data",
    "zeros",
    "unmapped",
];

#[test]
fn code_that_is_taken_away_runs_no_longer() {
    let program = compile("code_taken_away.c", &["-static", "-w"]);
    for (number, way) in WAYS.into_iter().enumerate() {
        let native = Command::new(&program).arg(way).output().unwrap();
        let engines = ["engine=translate", "engine=translate routes=soon", "engine=step"];
        for engine in &engines[..if is_whole() || number % 3 == 0 { 3 } else { 2 }] {
            let recorded = record(engine, &program, &[way]);
            assert_eq!(recorded.stdout(), String::from_utf8_lossy(&native.stdout), "{way}, {engine}");
            assert_eq!(recorded.output.status.code(), native.status.code(), "{way}, {engine}");
            let warned = recorded.outcome.contains("given back with MADV_FREE");
            assert_eq!(
                warned,
                way == "freed-only" && *engine != "engine=step",
                "{way}, {engine}: {}",
                recorded.outcome
            );
        }
    }
}

/// Runs so many threads of `code_by_threads.c` again and again.
fn threads_run_what_was_written(times: usize, rounds: &str, numbers: &[&str]) {
    let program = compile("code_by_threads.c", &["-static"]);
    for _ in 0..times {
        for &threads in numbers {
            for (how, distance) in [
                ("own", "16"),
                ("own", "64"),
                ("own", "4096"),
                ("handed", "16"),
                ("handed", "4096"),
                ("flipped", "4096"),
            ] {
                let native = Command::new(&program).args([how, distance, rounds, threads]).output().unwrap();
                for options in ["engine=translate", "engine=translate routes=soon"] {
                    let recorded = record(options, &program, &[how, distance, rounds, threads]);
                    let expected = String::from_utf8_lossy(&native.stdout);
                    assert_eq!(recorded.stdout(), expected, "{how} {distance} {threads}, {options}");
                    recorded.trace();
                }
            }
        }
    }
}

#[test]
fn threads_run_the_code_that_was_written_last() {
    threads_run_what_was_written(1, "60", if is_whole() { &["2", "3", "4", "8"] } else { &["2", "8"] });
}

#[test]
#[ignore = "the same a hundred times: some ten minutes"]
fn threads_run_the_code_that_was_written_last_each_time() {
    threads_run_what_was_written(100, "100", &["2", "3", "4", "8"]);
}
