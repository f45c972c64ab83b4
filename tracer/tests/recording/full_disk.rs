//! A disk that fills up, or a limit for files, while a program is recorded: the program runs on, the error is told, and
//! what was written can be read.

use std::path::Path;
use std::process::Command;

use trace_format::Trace;

use crate::support::{chain, compile, place, recorder};

/// What the program does without a recorder.
const ITS_OWN: (&str, i32) = ("3000000\n", 21);

/// Records the program by a shell's script, to which the recorder's command is `"$@"`, and asserts that it runs to its
/// own end.
fn record_by(shell: &[&str], script: &str, trace: &Path) -> String {
    let (program, outcome) = (compile("coins.c", &["-static"]), place("outcome"));
    let (first, rest) = shell.split_first().unwrap();
    let output = Command::new(first)
        .args(rest)
        .args(["-c", script, "sh"])
        .arg(recorder())
        .arg(trace)
        .arg(program)
        .env("RECORD_OPTIONS", "engine=translate")
        .env("RECORD_OUTCOME", &outcome)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((text.as_str(), output.status.code()), (ITS_OWN.0, Some(ITS_OWN.1)), "{output:?}");
    std::fs::read_to_string(outcome).unwrap()
}

fn assert_start_is_readable(trace: &Path) {
    let trace = Trace::open(trace).unwrap();
    assert!(trace.recovered().is_some_and(|what| what.contains("not finished")));
    assert!(trace.instructions() > 100_000, "{} instructions", trace.instructions());
    chain::check_start(&trace);
}

#[test]
fn a_limit_for_files_ends_the_recording_but_not_the_program() {
    let path = place("trace.bin");
    // In units of 512 bytes.
    let outcome = record_by(&["sh"], "ulimit -S -f 400 && exec \"$@\"", &path);
    assert!(outcome.contains("action: Write") && outcome.contains("File too large"), "{outcome}");
    assert!(outcome.contains("the trace could not be written"), "{outcome}");
    assert_start_is_readable(&path);
}

#[test]
fn a_disk_that_fills_up_ends_the_recording_but_not_the_program() {
    let namespace = ["unshare", "--user", "--map-root-user", "--mount", "sh"];
    if !Command::new(namespace[0])
        .args(&namespace[1..])
        .args(["-c", "mount -t tmpfs none /mnt"])
        .output()
        .is_ok_and(|o| o.status.success())
    {
        eprintln!("no file system can be mounted here: not tested");
        return;
    }
    let (folder, copy) = (place("disk"), place("trace.bin"));
    let path = folder.join("trace.bin");
    // The small disk is gone with its last process.
    let script = format!(
        "mkdir {folder} && mount -t tmpfs -o size=300k none {folder} && \"$@\"; status=$?; cp {path} {copy}; exit $status",
        folder = folder.display(),
        path = path.display(),
        copy = copy.display()
    );
    let outcome = record_by(&namespace, &script, &path);
    assert!(outcome.contains("action: Write") && outcome.contains("No space left on device"), "{outcome}");
    assert_start_is_readable(&copy);
}
