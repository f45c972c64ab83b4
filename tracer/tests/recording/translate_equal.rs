//! The engine `translate` records what `step` records, instruction for instruction, with the stack pointer and the
//! memory addresses of each.
//!
//! Programs are static where the loader is not the point: it takes `step` four times as long as all the rest.

use std::path::Path;

use crate::support::steps::{Step, steps};
use crate::support::{Recorded, compile, is_whole, place, record, record_command};

/// Options for `translate`: a cache as large as it is by default, a small one that is thrown away at random moments
/// too, and routes that are followed from the start.
const WHOLE: &str = "cache=41943040";
const THROWN_AWAY: &str = "cache=65536 throw=31337";
const ROUTES: &str = "cache=41943040 routes=soon";

fn recorded_by(engine: &str, words: &str, program: &Path, arguments: &[&str]) -> (Recorded, Vec<Vec<Step>>) {
    // The program inherits the options, and the length of the environment moves its stack.
    let options = format!("engine={engine:<9} {words:<127}");
    let path = place("trace.bin");
    let output = record_command(&options, &path, program, arguments).output().unwrap();
    let recorded = Recorded { output, outcome: String::new(), path };
    let trace = recorded.trace();
    assert_eq!(trace.meta().engine, engine);
    let threads = trace.threads().iter().map(|thread| steps(&trace, thread.id)).collect();
    (recorded, threads)
}

/// Records the program by both engines and asserts that the streams are the same, also when translations are thrown
/// away all the time, and where they are remembered from a run before.
fn assert_equal(program: &Path, arguments: &[&str]) -> usize {
    assert_equal_with("", program, arguments)
}

/// How often a program of several threads is run before its streams must have been one of the judge's: what a join
/// does depends on whether its thread has ended, so an honest difference is one of several runs.
const RUNS: usize = 10;

/// The same with more options.
pub fn assert_equal_with(more: &str, program: &Path, arguments: &[&str]) -> usize {
    assert_all_equal(&format!("memory {more}"), program, arguments)
}

/// The same with these options alone.
fn assert_all_equal(more: &str, program: &Path, arguments: &[&str]) -> usize {
    let judged = || recorded_by("step", &format!("{WHOLE} {more}"), program, arguments);
    let memory = place("memory");
    let (judge, expected) = judged();
    let several = expected.len() > 1;
    let mut all = vec![expected];
    // What the first of these runs has translated, the second translates at once.
    let remembered = [ROUTES, WHOLE].map(|cache| format!("{cache} remember={}", memory.display()));
    for cache in [WHOLE, THROWN_AWAY, ROUTES, &remembered[0], &remembered[1]] {
        for run in 1.. {
            let (fast, found) = recorded_by("translate", &format!("{cache} {more}"), program, arguments);
            assert_eq!(fast.output.status.code(), judge.output.status.code(), "exit status, {cache}");
            assert_eq!(fast.stdout(), judge.stdout(), "stdout, {cache}");
            assert_eq!(found.len(), all[0].len(), "threads, {cache}");
            let differences: Option<Vec<_>> = all.iter().map(|expected| first_difference(&found, expected)).collect();
            let Some(differences) = differences else { break };
            assert!(several && run < RUNS, "{}, {cache}", differences.last().unwrap());
            all.push(judged().1);
        }
    }
    all[0].iter().map(Vec::len).sum()
}

/// Where the streams of the threads are not the same.
fn first_difference(found: &[Vec<Step>], expected: &[Vec<Step>]) -> Option<String> {
    found.iter().zip(expected).enumerate().find_map(|(thread, (found, expected))| {
        if let Some(at) = found.iter().zip(expected).position(|(a, b)| a != b) {
            let from = at.saturating_sub(3);
            let (found, expected) = (&found[from..=at], &expected[from..=at]);
            return Some(format!("thread {thread} differs at {at}:\n{found:#x?}\n{expected:#x?}"));
        }
        (found.len() != expected.len()).then(|| format!("thread {thread}: one ends before the other"))
    })
}

#[test]
fn a_dynamic_program() {
    assert!(assert_equal(&compile("hello.c", &[]), &[]) > 50_000, "with the loader");
}

#[test]
fn a_static_program() {
    assert!(assert_equal(&compile("hello.c", &["-static"]), &[]) > 1000);
}

#[test]
fn a_program_that_lies_at_a_fixed_place() {
    assert!(assert_equal(&compile("hello.c", &["-no-pie", "-O0"]), &[]) > 1000);
}

#[test]
fn addresses_of_atomic_instructions_where_no_others_are_recorded() {
    for optimisation in if is_whole() { &["-O2", "-O0"][..] } else { &["-O2"] } {
        let program = compile("atomics.c", &["-static", optimisation]);
        assert_all_equal("", &program, &[]);
        let trace = record("engine=translate", &program, &[]).trace();
        let addresses: u64 = trace.threads().iter().map(|thread| addresses(&steps(&trace, thread.id))).sum();
        assert!((9_000..200_000).contains(&addresses), "{addresses}");
    }
}

fn addresses(steps: &[Step]) -> u64 {
    let of = |step: &Step| if let Step::Instruction { addresses, .. } = step { addresses.len() as u64 } else { 0 };
    steps.iter().map(of).sum()
}

#[test]
fn a_program_with_signals_and_siglongjmp() {
    assert_equal(&compile("signal_jump.c", &["-static"]), &[]);
}

#[test]
fn a_program_with_exceptions() {
    assert_equal(&compile("exception.cpp", &["-static-pie", "-fPIE"]), &[]);
}

#[test]
fn a_program_that_generates_code() {
    assert_equal(&compile("generated.c", &["-static"]), &[]);
}

#[test]
fn pages_of_code_that_are_written_and_run_in_turn() {
    let program = compile("page_of_code.c", &["-static"]);
    assert_equal(&program, &[]);
    // Most of a page stays as it was, and is not translated again.
    let recorded = record("engine=translate", &program, &[]);
    let number = |name: &str| recorded.number(name);
    assert!(number("revived") > 500 && number("again") < 300, "{}", recorded.outcome);
}

#[test]
fn code_near_which_nothing_has_room() {
    let program = compile("crowded.c", &["-static"]);
    assert_equal(&program, &[]);
    let recorded = record("engine=translate", &program, &[]);
    assert_eq!(recorded.number("without_room"), 1, "each place is tried once, not for each of 500 functions");
}

#[test]
fn code_that_system_calls_write() {
    assert_equal(&compile("code_by_calls.c", &["-static"]), &[]);
}

#[test]
fn code_that_is_written_through_another_view_of_its_memory() {
    assert_equal(&compile("code_views.c", &["-static"]), &[]);
}

#[test]
fn a_program_that_is_killed_by_its_own_fault() {
    assert_equal(&compile("killed.c", &["-static"]), &[]);
}

#[test]
fn calls_of_null_where_nothing_lies_and_where_code_does() {
    assert_equal(&compile("calls_null.c", &["-static"]), &[]);
}

#[test]
fn a_program_that_loads_a_library() {
    assert_equal(&compile("loads.c", &[]), &[]);
}

#[test]
fn instructions_of_every_odd_kind() {
    assert!(assert_equal(&compile("counts.S", &[]), &[]) > 80);
    assert_equal(&compile("long_block.S", &[]), &[]);
    assert_equal(&compile("memory.S", &[]), &[]);
}

#[test]
fn memory_operands_of_every_odd_kind() {
    let program = compile("addresses.S", &[]);
    assert!(assert_equal(&program, &[]) > 250_000);
    let (_, threads) = recorded_by("translate", &format!("memory {WHOLE}"), &program, &[]);
    let count = |step: &Step| if let Step::Instruction { addresses, .. } = step { addresses.len() } else { 0 };
    assert!(threads[0].iter().map(count).sum::<usize>() > 200_000);
}

#[test]
fn a_program_whose_system_calls_are_restarted() {
    assert_equal(&compile("restart.c", &["-static"]), &[]);
}

#[test]
fn a_program_that_waits_at_a_futex() {
    assert_equal(&compile("futex.c", &["-static"]), &[]);
}

#[test]
fn a_program_that_becomes_another() {
    assert_equal(&compile("exec.c", &["-static"]), &[]);
}

#[test]
fn a_program_that_sets_the_base_of_gs() {
    assert_equal_with("follow-forks", &compile("segments.c", &["-static"]), &[]);
}

#[test]
fn a_program_that_forks() {
    assert_equal(&compile("fork_exec.c", &["-static"]), &[]);
}

#[test]
fn functions_that_are_unwound() {
    assert_equal(&compile("unwound.c", &["-static"]), &[]);
}

#[test]
fn a_function_that_ends_with_a_jump_to_a_lock() {
    assert_equal(&compile("tail_calls.c", &["-static", "-foptimize-sibling-calls"]), &["1000"]);
}

#[test]
fn a_long_loop_does_not_outgrow_its_buffer() {
    assert!(assert_equal(&compile("long_loop.S", &[]), &[]) > 100_000);
}
