//! Programs that want memory where the engine `translate` has its own, and runtimes that want most of all there is.

use std::path::Path;
use std::process::Command;

use crate::support::{Recorded, compile, compile_with, record};

/// Records the program with `translate`, and asserts that it prints and returns what it does natively, at addresses
/// that are chosen at random only where they are in the recording.
fn like_native(options: &str, program: &Path, arguments: &[&str]) -> Recorded {
    let recorded = runs_like_native(options, program, arguments);
    recorded.trace();
    recorded
}

/// The same of a program whose threads run on until it ends: its trace may have billions of instructions, and is not
/// looked at.
fn runs_like_native(options: &str, program: &Path, arguments: &[&str]) -> Recorded {
    let mut native = Command::new("setarch");
    native.args(if options.contains("aslr") { &["x86_64"][..] } else { &["x86_64", "-R"] });
    let native = native.arg(program).args(arguments).output().unwrap();
    let recorded = record(&format!("engine=translate {options}"), program, arguments);
    let stdout = String::from_utf8_lossy(&native.stdout);
    assert_eq!(recorded.stdout(), stdout, "{}, {options}: {}", program.display(), recorded.stderr());
    assert_eq!(recorded.output.status.code(), native.status.code(), "{options}: {}", recorded.stderr());
    recorded
}

#[test]
fn memory_of_ours_moves_out_of_the_way_of_what_is_natively_free() {
    for link in ["-pie", "-no-pie", "-static-pie"] {
        let program = compile("wants_memory.c", &[link]);
        for options in ["", "aslr", "throw=7 cache=65536", "memory small=3"] {
            if link == "-no-pie" && options == "aslr" {
                // Its break may then lie in the low memory that the program asks for.
                continue;
            }
            let recorded = like_native(options, &program, &[]);
            assert!(recorded.outcome.contains("warnings: []"), "{}", recorded.outcome);
        }
    }
}

#[test]
fn sanitizers_find_their_memory_free() {
    for (compiler, kinds) in [
        ("gcc", &["address", "thread", "leak", "undefined"][..]),
        ("clang-19", &["address", "thread", "memory", "leak"]),
    ] {
        for kind in kinds {
            let program = compile_with(compiler, "sanitized.c", &["-g", &format!("-fsanitize={kind}")]);
            for options in ["", "aslr"] {
                like_native(options, &program, &[]);
            }
        }
    }
}

#[test]
fn a_leak_checker_stops_threads_that_are_recorded_and_finds_what_they_have_lost() {
    for (compiler, kind) in [("gcc", "leak"), ("clang-19", "address")] {
        // Optimised by clang the program allocates nothing that it loses.
        let program = compile_with(compiler, "sanitized.c", &["-O0", "-g", &format!("-fsanitize={kind}")]);
        for options in ["", "follow-forks", "throw=11"] {
            let recorded = like_native(options, &program, &["lose"]);
            assert_ne!(recorded.output.status.code(), Some(0), "{compiler}");
            // 64 bytes and 16 more for each further thread.
            let summary = "960 byte(s) leaked in 8 allocation(s)";
            assert!(recorded.stderr().contains(summary), "{compiler}, {options}: {}", recorded.stderr());
        }
    }
}

#[test]
fn a_leak_checker_stops_threads_that_wait_and_threads_that_run() {
    for (compiler, kind) in [("gcc", "leak"), ("clang-19", "address")] {
        let flags = ["-O0", "-g", &format!("-fsanitize={kind}")];
        let program = compile_with(compiler, "leaks_while_others_wait.c", &flags);
        for options in ["", "follow-forks"] {
            runs_like_native(options, &program, &[]);
            let recorded = runs_like_native(options, &program, &["lose"]);
            let summary = "77 byte(s) leaked in 1 allocation(s)";
            assert!(recorded.stderr().contains(summary), "{compiler}, {options}: {}", recorded.stderr());
        }
    }
}

#[test]
fn what_a_program_switches_off_for_itself_does_not_hit_the_copies_of_its_code() {
    let program = compile("switched_off.c", &[]);
    for options in ["", "throw=5 cache=65536", "memory small=2"] {
        like_native(options, &program, &[]);
    }
}
