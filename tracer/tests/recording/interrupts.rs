//! Ctrl-C and its kin end the program, and the trace is whole.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use trace_format::{Finish, Trace};

use crate::support::group::{assert_nobody_left, bury_orphans};
use crate::support::{Recorded, compile, place, record_command};

/// Starts the program in a process group of its own, as a shell does, and waits until it is in its loop.
fn start(mode: &str) -> (Child, Recorded) {
    start_with("", mode)
}

fn start_with(options: &str, mode: &str) -> (Child, Recorded) {
    let path = place("trace.bin");
    let recorder = record_command(options, &path, &compile("endless.c", &["-static"]), &[mode]);
    let mut child = with_default_signals(&recorder).process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let output = std::process::Output { status: ExitStatus::from_raw(0), stdout: Vec::new(), stderr: Vec::new() };
    (child, Recorded { output, outcome: String::new(), path })
}

/// The same command. Who runs these tests in the background may have SIGINT ignored, which a recorder and its program
/// would inherit.
fn with_default_signals(recorder: &Command) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(recorder.get_program()).args(recorder.get_args());
    command.envs(recorder.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// The end of the trace. What the program did in its endless loop is more than one would want to look at.
fn finish(recorded: &Recorded) -> Finish {
    let trace = Trace::open(&recorded.path).unwrap();
    assert!(trace.recovered().is_none(), "{:?}", trace.recovered());
    trace.finish().unwrap().clone()
}

/// The process group that the child leads.
fn group(child: &Child) -> Pid {
    Pid::from_raw(-(child.id() as i32))
}

fn process(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32)
}

#[test]
fn an_interrupt_of_the_group_ends_the_program() {
    let (mut child, recorded) = start("");
    kill(group(&child), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(finish(&recorded).signal, Some(2));
}

#[test]
fn a_named_pipe_that_nobody_reads_does_not_keep_a_signal_up() {
    let pipe = place("trace.bin");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for engine in ["engine=translate", "engine=step"] {
        let mut command = record_command(engine, &pipe, &compile("hello.c", &["-static"]), &[]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        kill(process(&child), Signal::SIGTERM).unwrap();
        let mut error = String::new();
        child.stderr.as_mut().unwrap().read_to_string(&mut error).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(125), "{error}");
        assert!(error.contains("before anyone opened this named pipe for reading"), "{error}");
    }
    let mut reader = Command::new("cat").arg(&pipe).stdout(Stdio::null()).spawn().unwrap();
    let output = record_command("engine=translate", &pipe, &compile("hello.c", &["-static"]), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(reader.wait().unwrap().success());
}

/// Records a program into a named pipe of a page that nobody reads, of which so many bytes are taken already, asks the
/// recorder to end while it waits, and returns its status, what it said, and the outcome.
fn recorded_into_full_pipe(engine: &str, taken: usize) -> (Option<i32>, String, String) {
    let (pipe, outcome) = (place("trace.bin"), place("outcome"));
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut ends = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(&pipe).unwrap();
    fcntl(&ends, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    ends.write_all(&vec![0; taken]).unwrap();
    let recorder = record_command(engine, &pipe, &compile("coins.c", &["-static"]), &[]);
    let mut command = with_default_signals(&recorder);
    let mut child = command.env("RECORD_OUTCOME", &outcome).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(child.try_wait().unwrap().is_none(), "{engine}: it does not wait for the reader");
    kill(process(&child), Signal::SIGTERM).unwrap();
    let ended = (0..3000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        child.try_wait().unwrap().is_some()
    });
    assert!(ended, "{engine}: the recorder waits for ever");
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), error, std::fs::read_to_string(outcome).unwrap_or_default())
}

#[test]
fn a_named_pipe_whose_reader_stops_reading_does_not_keep_a_signal_up() {
    let (status, _, outcome) = recorded_into_full_pipe("engine=translate", 0);
    assert_eq!(status, Some(143));
    assert!(outcome.contains("read nothing more"), "{outcome}");
    for engine in ["engine=translate", "engine=step"] {
        let (status, error, _) = recorded_into_full_pipe(engine, 4096);
        assert_eq!(status, Some(125), "{engine}");
        assert!(error.contains("read nothing more"), "{engine}: {error}");
    }
}

#[test]
fn signals_to_the_recorder_alone_are_passed_on() {
    for (signal, status) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let (mut child, recorded) = start("wait");
        kill(process(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(status));
        assert_eq!(finish(&recorded).signal, Some(status - 128));
    }
}

#[test]
fn a_program_that_handles_the_interrupt_ends_by_itself() {
    let (mut child, recorded) = start("handle");
    kill(process(&child), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(11));
    assert_eq!(finish(&recorded).stopped_early, None);
}

#[test]
fn a_program_that_ignores_the_interrupt_is_killed() {
    let (mut child, recorded) = start("ignore");
    kill(process(&child), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(137));
    assert!(finish(&recorded).stopped_early.as_ref().unwrap().contains("interrupted"));
}

#[test]
fn a_second_interrupt_ends_recorded_children_that_outlive_the_program() {
    for engine in ["engine=translate follow-forks", "engine=step follow-forks"] {
        let (mut child, recorded) = start_with(engine, "leave");
        kill(process(&child), Signal::SIGINT).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        assert!(child.try_wait().unwrap().is_none(), "the child that was left ignores it");
        kill(process(&child), Signal::SIGINT).unwrap();
        let ended = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            child.try_wait().unwrap().is_some()
        });
        assert!(ended, "the recorder waits for ever");
        assert_eq!(finish(&recorded).exit_status, Some(0), "{engine}");
    }
}

#[test]
fn nothing_is_left_behind_when_the_recorder_is_killed() {
    bury_orphans();
    let (mut child, _) = start("wait");
    let group = group(&child);
    child.kill().unwrap();
    child.wait().unwrap();
    // The program has the group of its recorder; the kernel takes a moment to end it.
    assert_nobody_left(group);
}
