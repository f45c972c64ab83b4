//! The engine `translate` with translations that are thrown away all the time: because there is little room for them,
//! and at random moments too.

use std::path::Path;
use std::process::Command;

use trace_format::Event;

use crate::support::{Recorded, compile, events, record};

/// Options: little room, and a choice of moments.
fn options(seed: u32) -> String {
    format!("engine=translate aslr cache=65536 throw={seed}")
}

/// Records the program, and asserts that it prints what it prints natively, that its trace hangs together, and that
/// translations were thrown away.
fn renewed(program: &Path, arguments: &[&str], seed: u32) -> Recorded {
    let native = Command::new(program).args(arguments).output().unwrap();
    let recorded = record(&options(seed), program, arguments);
    assert_eq!(recorded.stdout(), String::from_utf8_lossy(&native.stdout), "stderr: {}", recorded.stderr());
    assert_eq!(recorded.output.status.code(), native.status.code(), "{}", recorded.outcome);
    recorded.trace();
    assert!(recorded.number("renewals") > 3, "{}", recorded.outcome);
    recorded
}

#[test]
fn a_transform_of_four_threads() {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../workloads/include");
    let program = compile("../../../workloads/fft/fft.c", &[include, "-lm"]);
    for seed in 1..=3 {
        renewed(&program, &["-p", "4", "-m", "14"], seed);
    }
    let native = Command::new(&program).args(["-p", "4", "-m", "14"]).output().unwrap();
    for options in ["routes=soon", "routes=soon cache=1000000 throw=9", "routes=soon memory throw=5"] {
        let recorded = record(&format!("engine=translate aslr {options}"), &program, &["-p", "4", "-m", "14"]);
        assert_eq!(recorded.stdout(), String::from_utf8_lossy(&native.stdout), "{options}: {}", recorded.stderr());
        recorded.trace();
    }
}

#[test]
fn threads_that_get_signals_all_the_time() {
    let program = compile("signal_storm.c", &[]);
    for seed in 1..=3 {
        renewed(&program, &["40"], seed);
    }
}

#[test]
fn threads_that_wait_for_locks() {
    // It prints addresses, which differ from run to run.
    let recorded = record(&options(4), &compile("locks.c", &[]), &[]);
    assert_eq!(recorded.output.status.code(), Some(0), "{}", recorded.outcome);
    recorded.trace();
    assert!(recorded.number("renewals") > 3, "{}", recorded.outcome);
}

#[test]
fn a_wait_that_is_begun_again_when_the_value_has_changed_was_a_wait() {
    // A thread that is brought to rest in its wait begins it again. If the other has ended meanwhile, the kernel says
    // that there is nothing to wait for; by then the thread has waited.
    let program = compile("joined_late.c", &["-static"]);
    let waits = |options: &str| {
        let trace = record(options, &program, &[]).trace();
        events(&trace, 0).iter().filter(|event| matches!(event, Event::FutexWait { .. })).count()
    };
    for seed in 1..=24 {
        assert_eq!(waits(&options(seed)), 8, "seed {seed}");
    }
}

#[test]
fn threads_that_come_and_go() {
    renewed(&compile("short_threads.c", &[]), &[], 5);
}

#[test]
fn code_that_is_generated_without_end_takes_bounded_memory() {
    let program = compile("generates_forever.c", &[]);
    let options = "engine=translate cache=250000 throw=never";
    let [few, many] = ["500", "1500"].map(|functions| {
        let recorded = record(options, &program, &[functions]);
        assert_eq!(recorded.stdout(), format!("{functions} functions\n"), "{}", recorded.stderr());
        recorded.trace();
        recorded
    });
    for recorded in [&few, &many] {
        // A stop translates no more than a few dozen superblocks beyond the limit.
        assert!(recorded.number("most_code") < 350_000, "{}", recorded.outcome);
    }
    let [few, many] = [few, many].map(|recorded| recorded.number("renewals"));
    assert!(few > 1 && many >= few + 3, "thrown away {few} and {many} times");
}
