//! `-` for a file is standard input or output, and a file that was written is named on a terminal.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use crate::support::{command, root, succeed};

fn vector() -> String {
    root().join("heuristics/conformance/case-12.trace.gz").to_str().unwrap().to_owned()
}

/// Runs one of our programs with this file on standard input, through a pipe, which has no offsets.
fn fed(file: &str, program: &str, arguments: &[&str]) -> Output {
    let mut cat = Command::new("cat").stdin(File::open(file).unwrap()).stdout(Stdio::piped()).spawn().unwrap();
    let output = command(program, arguments).stdin(cat.stdout.take().unwrap()).output().unwrap();
    cat.wait().unwrap();
    output
}

#[test]
fn a_trace_on_standard_input_is_read_as_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("binary.trace").to_str().unwrap().to_owned();
    succeed("lockstep", &["convert", "-o", &binary, &vector()]);
    for trace in [vector(), binary] {
        for (program, arguments) in [
            ("lockstep", &["dump", "--text"][..]),
            ("replay", &["--heuristic", "minpc"]),
            ("lockstep", &["check", "--model", "minpc", "--min-efficiency", "0.01"]),
            ("lockstep", &["export", "--format", "folded", "--model", "minpc"]),
        ] {
            let from_file = succeed(program, &[arguments, &[&trace]].concat());
            let output = fed(&trace, program, &[arguments, &["-"]].concat());
            let piped = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(!piped.is_empty() && piped.replace(&trace, "-") == from_file.replace(&trace, "-"), "{piped}");
        }
    }
}

#[test]
fn what_is_no_trace_on_standard_input_is_named_so() {
    let output = fed(root().join("Cargo.toml").to_str().unwrap(), "replay", &["-"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(3) && said.contains("standard input"), "{said}");
}

#[test]
fn rows_on_standard_input_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let [rows, chart] = ["rows.csv", "chart.svg"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    succeed("replay", &["--heuristic", "minpc,ipdom", "--csv", &rows, &vector()]);
    let output = fed(&rows, "lockstep", &["plot", "-", "-o", &chart]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::read_to_string(chart).unwrap().contains("ipdom"));
}

#[test]
fn a_file_that_was_written_is_named_on_a_terminal_only() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.trace").to_str().unwrap().to_owned();
    let arguments = ["convert", "-o", &out, &vector()];
    let piped = command("lockstep", &arguments).output().unwrap();
    assert!(piped.status.success() && piped.stderr.is_empty(), "{piped:?}");
    // `script` gives the command a terminal.
    let typed = format!("{} {}", env!("CARGO_BIN_EXE_lockstep"), arguments.join(" "));
    let output = Command::new("script").args(["-qec", &typed, "/dev/null"]).output().expect("script runs");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && shown.contains(&format!("lockstep: wrote {out}")), "{shown}");
}

#[test]
fn a_trace_is_not_mixed_with_the_programs_output() {
    let folder = tempfile::tempdir().unwrap();
    let output = command("trace", &["-o", "-", "true"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("name a file for the trace"), "{output:?}");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}
