//! What cannot be recorded is refused with the reason, and the status of the recorder's own.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Recorded, compile, place, record, record_command};

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
    assert!(outcome.contains("action: Write") && outcome.contains("could not be written"), "{outcome}");
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

/// Records a program that cannot be recorded to its end: it does what it does natively, and the outcome says why there
/// is no more.
fn goes_on_by_itself(program: &Path, arguments: &[&str], reason: &str) -> Recorded {
    let native = Command::new(program).args(arguments).output().unwrap();
    let recorded = record("engine=translate", program, arguments);
    assert_eq!(recorded.output.status.code(), native.status.code(), "{}", recorded.outcome);
    assert_eq!(recorded.stdout(), String::from_utf8_lossy(&native.stdout));
    assert!(recorded.outcome.contains(reason), "{}", recorded.outcome);
    recorded.trace();
    recorded
}

/// The step engine makes no calls in the program's place.
fn recorded_by_step(program: &Path, arguments: &[&str]) {
    let native = Command::new(program).args(arguments).output().unwrap();
    let recorded = record("engine=step", program, arguments);
    assert_eq!(recorded.output.status.code(), native.status.code(), "{}", recorded.outcome);
    assert!(recorded.outcome.contains("stopped_early: None"), "{}", recorded.outcome);
}

#[test]
fn a_program_that_restricts_its_system_calls_goes_on_by_itself() {
    let program = compile("seccomp.c", &[]);
    for mode in ["filter", "strict"] {
        goes_on_by_itself(
            &program,
            &[mode],
            "seccomp): it runs on from there without being recorded (use --engine \
             step",
        );
        recorded_by_step(&program, &[mode]);
    }
    let asked = goes_on_by_itself(&program, &["ask"], "stopped_early: None");
    assert_eq!(asked.output.status.code(), Some(11));
}

#[test]
fn a_program_of_several_threads_that_restricts_its_system_calls_is_ended() {
    let recorded = record("engine=translate", &compile("seccomp.c", &[]), &["threads"]);
    assert_eq!(recorded.output.status.code(), Some(137), "{}", recorded.outcome);
    assert!(recorded.outcome.contains("seccomp); it has several threads"), "{}", recorded.outcome);
    assert!(recorded.outcome.contains("--engine step"));
    recorded.trace();
}

#[test]
fn a_child_that_restricts_its_system_calls_goes_on_by_itself_while_its_maker_is_recorded() {
    let program = compile("seccomp.c", &[]);
    let script = format!("{} filter; echo $?", program.display());
    let recorded = record("engine=translate follow-forks", Path::new("sh"), &["-c", &script]);
    assert_eq!(recorded.stdout(), "filtered\n45\n", "{}", recorded.outcome);
    assert!(recorded.outcome.contains("not recorded any further: it restricts"), "{}", recorded.outcome);
    assert!(recorded.outcome.contains("stopped_early: None"), "{}", recorded.outcome);
    recorded.trace();
}

#[test]
fn a_program_that_runs_32_bit_code_goes_on_by_itself() {
    let program = compile("code32.S", &["-no-pie"]);
    if Command::new(&program).arg("old").status().unwrap().code() != Some(42) {
        eprintln!("this kernel has no 32-bit system calls: not tested");
        return;
    }
    goes_on_by_itself(&program, &[], "it runs 32-bit code: it runs on from there");
    goes_on_by_itself(&program, &["old"], "it makes a 32-bit system call: it runs on from there");
}

/// Records a program under a limit that a shell sets, and returns status, what was said, and the outcome.
fn recorded_under(limit: &str, engine: &str, program: &Path) -> (Option<i32>, String, String) {
    let outcome = place("outcome");
    let script = format!("ulimit {limit} && exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(crate::support::recorder()).arg(place("trace.bin")).arg(program);
    command.env("RECORD_OPTIONS", engine).env("RECORD_OUTCOME", &outcome);
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), error, std::fs::read_to_string(outcome).unwrap_or_default())
}

#[test]
fn a_limit_that_leaves_no_room_is_named() {
    let program = compile("hello.c", &["-static"]);
    for (limit, named) in
        [("-v 2000000", "limited to 2048000000 (ulimit -v)"), ("-f 100", "limited to 51200 (ulimit -f)")]
    {
        let script = format!("ulimit {limit} && exec \"$@\"");
        let native = Command::new("sh").args(["-c", &script, "sh"]).arg(&program).output().unwrap();
        assert_eq!(native.status.code(), Some(7), "{limit}");
        let (status, error, _) = recorded_under(limit, "engine=translate", &program);
        assert_eq!(status, Some(125), "{limit}: {error}");
        assert!(error.contains(named) && error.contains("raise that limit"), "{limit}: {error}");
        let (status, error, outcome) = recorded_under(limit, "engine=step", &program);
        assert_eq!(status, Some(7), "{limit}: {error}");
        assert!(outcome.contains("warnings: []"), "{outcome}");
    }
}

#[test]
fn a_limit_that_leaves_some_room_is_told() {
    let program = compile("hello.c", &["-static"]);
    let (status, error, outcome) = recorded_under("-v 9000000", "engine=translate", &program);
    assert_eq!(status, Some(7), "{error}");
    assert!(outcome.contains("limited to 9216000000 (ulimit -v), and its translation takes"), "{outcome}");
}

#[test]
fn a_program_may_trace_its_children_which_are_recorded_no_further() {
    let program = compile("tracer.c", &[]);
    goes_on_by_itself(&program, &[], "warnings: []");
    for engine in ["translate", "step"] {
        let recorded = record(&format!("engine={engine} follow-forks"), &program, &[]);
        assert_eq!(recorded.stdout(), "1 stops, status 5\n", "{engine}");
        let said = "is not recorded any further: its parent traces it";
        assert!(recorded.outcome.contains(said), "{engine}: {}", recorded.outcome);
        recorded.trace();
        let refused = record(&format!("engine={engine} follow-forks"), &program, &["attach"]);
        assert_eq!(refused.stdout(), "attach: Operation not permitted\n", "{engine}");
        let said = "the program could not trace another process";
        assert!(refused.outcome.contains(said), "{engine}: {}", refused.outcome);
        refused.trace();
    }
}

#[test]
fn a_program_that_becomes_a_set_user_id_program_keeps_its_privileges() {
    use std::os::unix::fs::PermissionsExt;
    if !nix::unistd::geteuid().is_root() || Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("only root can make set-user-id programs of others: not tested");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let within = |name: &str| folder.path().join(name);
    let everybody = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    std::fs::copy(compile("privileged.c", &[]), within("plain")).unwrap();
    std::fs::copy(within("plain"), within("root")).unwrap();
    std::fs::copy(crate::support::recorder(), within("record")).unwrap();
    everybody(folder.path(), 0o777);
    everybody(&within("root"), 0o4755);
    let run = |words: &[&str], outcome: &str| {
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
        let mut command = Command::new("setpriv");
        command.args(user).args(words).current_dir(&folder).env("RECORD_OUTCOME", within(outcome));
        command.env("RECORD_OPTIONS", "engine=translate follow-forks");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let privileged = "user 0, for 65534\n";
    if run(&["./plain", "./root"], "none") != privileged {
        eprintln!("set-user-id programs get no privileges here: not tested");
        return;
    }
    for (words, reason) in [
        (
            &["./record", "trace", "./plain", "./root"][..],
            "set-user-id program, and the kernel takes its privileges \
             away",
        ),
        (&["./record", "trace", "./plain", "./root", "child"], "not recorded any further: it starts a set-user-id"),
    ] {
        assert_eq!(run(words, "outcome"), privileged);
        let outcome = std::fs::read_to_string(within("outcome")).unwrap();
        assert!(outcome.contains(reason), "{outcome}");
    }
}
