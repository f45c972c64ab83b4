//! What cannot be recorded is refused with the reason, and the status of the recorder's own.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{compile, place, record, record_command};

fn refusal(program: &Path) -> String {
    let recorded = record("", program, &[]);
    assert_eq!(recorded.output.status.code(), Some(125), "{}", recorded.stderr());
    assert!(!recorded.path.exists(), "a trace was made of nothing");
    recorded.stderr()
}

#[test]
fn programs_that_are_not_there_are_named() {
    assert!(refusal(Path::new("/no/such/program")).contains("/no/such/program: program not found"));
    assert!(refusal(Path::new("no-such-program")).contains("not found in PATH"));
}

#[test]
fn a_missing_loader_is_named() {
    let program = compile("hello.c", &["-Wl,--dynamic-linker=/no/such/loader.so"]);
    assert!(refusal(&program).contains("/no/such/loader.so"));
}

#[test]
fn a_trace_that_cannot_be_made_keeps_the_program_from_running() {
    let program = compile("hello.c", &["-static"]);
    let output = record_command("", Path::new("/no/such/folder/trace.bin"), &program, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("/no/such/folder/trace.bin: cannot create"), "{text}");
}

#[test]
fn a_trace_that_can_be_written_no_further_lets_the_program_end() {
    // A pipe whose reader leaves stands for a disk that fills up.
    let (pipe, outcome) = (place("pipe"), place("outcome"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = record_command("engine=step", &pipe, &compile("long_loop.S", &[]), &[]);
    let mut child = command.env("RECORD_OUTCOME", &outcome).stdout(Stdio::piped()).spawn().unwrap();
    let reader = File::open(&pipe).unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    drop(reader);
    assert_eq!(child.wait().unwrap().code(), Some(33));
    let outcome = std::fs::read_to_string(outcome).unwrap();
    assert!(outcome.contains("cannot write") && outcome.contains("could not be written"), "{outcome}");
}

#[test]
fn a_recorder_that_is_traced_itself_still_records_or_says_why_not() {
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("strace is missing: not tested");
        return;
    }
    let (trace, program) = (place("trace.bin"), compile("hello.c", &["-static"]));
    let inner = record_command("", &trace, &program, &[]);
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "/dev/null"]).arg(inner.get_program()).args(inner.get_args());
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{text}");
    assert!(text.contains("being traced"), "{text}");
}
