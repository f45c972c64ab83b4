//! SIGKILL at any moment, for the recorder or for the program: what was written can be read, and nobody stays behind.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use trace_format::Trace;

use crate::support::group::{assert_nobody_left, bury_orphans, within_ten_seconds};
use crate::support::{chain, compile, is_whole, place, record, record_command};

/// How often each is killed.
const TIMES: u32 = 50;
/// The same where each time takes long: there are many processes to bury.
const FEWER_TIMES: u32 = 15;
/// Options for programs with their children.
const FOLLOWED: &str = "engine=translate follow-forks";
/// The latest moment, in microseconds after the start: by then the threads count.
const LATEST: u64 = 200_000;

/// Moments by chance. `KILL_SEED` repeats a failed run.
struct Moments(u64);

impl Moments {
    fn new(what: &str) -> Moments {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed = std::env::var("KILL_SEED").map_or(now | 1, |seed| seed.parse().unwrap());
        println!("{what}: KILL_SEED={seed}");
        Moments(seed)
    }

    fn next(&mut self) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Duration::from_micros(self.0 % LATEST)
    }
}

fn start(options: &str, program: &Path, trace: &Path) -> (Child, Pid) {
    bury_orphans();
    let mut command = record_command(options, trace, program, &[]);
    let child = command.process_group(0).spawn().unwrap();
    let group = Pid::from_raw(-(child.id() as i32));
    (child, group)
}

/// The first child of a process.
fn child_of(process: u32) -> Option<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    Some(Pid::from_raw(children.split_whitespace().next()?.parse().unwrap()))
}

/// Kills the recorder; returns how many instructions the traces hold.
fn kill_recorders(options: &str, source: &str, times: u32) -> u64 {
    let program = compile(source, &[]);
    let mut moments = Moments::new(&format!("recorder, {options}"));
    let mut instructions = 0;
    for _ in 0..times {
        let path = place("trace.bin");
        let (mut child, group) = start(options, &program, &path);
        std::thread::sleep(moments.next());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_nobody_left(group);
        // Before the first chunk there is nothing to be read.
        if std::fs::metadata(&path).is_ok_and(|file| file.len() > 1024) {
            let trace = Trace::open(&path).unwrap();
            assert!(trace.recovered().is_some_and(|what| what.contains("not finished")));
            instructions += trace.instructions();
            chain::check_start(&trace);
        }
        std::fs::remove_file(&path).ok();
    }
    instructions
}

/// Kills the program; the recorder ends by itself, with a whole trace.
fn kill_programs(options: &str, source: &str, times: u32) {
    let program = compile(source, &[]);
    let mut moments = Moments::new(&format!("program, {options}"));
    for _ in 0..times {
        let path = place("trace.bin");
        let (mut child, group) = start(options, &program, &path);
        let mut process = None;
        assert!(within_ten_seconds(|| {
            process = child_of(child.id());
            process.is_some()
        }));
        std::thread::sleep(moments.next());
        kill(process.unwrap(), Signal::SIGKILL).unwrap();
        let mut status = None;
        assert!(within_ten_seconds(|| {
            status = child.try_wait().unwrap();
            status.is_some()
        }));
        assert_nobody_left(group);
        let status = status.unwrap().code();
        if path.exists() {
            assert_eq!(status, Some(137));
            let trace = Trace::open(&path).unwrap();
            assert!(trace.recovered().is_none(), "{:?}", trace.recovered());
            assert_eq!(trace.finish().unwrap().signal, Some(9));
            chain::check(&trace);
        } else {
            assert_eq!(status, Some(125), "killed before it became the program");
        }
        std::fs::remove_file(&path).ok();
    }
}

#[test]
fn a_killed_recorder_of_translate_leaves_a_readable_trace_and_nobody() {
    assert!(kill_recorders("engine=translate", "busy.c", TIMES) > 0, "no trace had a whole chunk");
}

#[test]
fn a_killed_recorder_of_step_leaves_a_readable_trace_and_nobody() {
    kill_recorders("engine=step", "busy.c", TIMES);
}

#[test]
fn a_killed_program_under_translate_ends_its_trace() {
    kill_programs("engine=translate", "busy.c", TIMES);
}

#[test]
fn a_killed_program_under_step_ends_its_trace() {
    kill_programs("engine=step", "busy.c", TIMES);
}

#[test]
fn a_killed_recorder_of_many_processes_leaves_a_readable_trace_and_nobody() {
    assert!(kill_recorders(FOLLOWED, "busy_forks.c", FEWER_TIMES) > 0, "no trace had a whole chunk");
}

#[test]
fn a_killed_program_with_recorded_children_ends_its_trace() {
    kill_programs(FOLLOWED, "busy_forks.c", FEWER_TIMES);
}

#[test]
fn a_killed_program_with_children_that_are_let_go_ends_its_trace() {
    kill_programs("engine=translate", "busy_forks.c", FEWER_TIMES);
}

/// Where a thread is killed while it stands at a stop, the stop at its end is the one that it is told to go on from.
/// All translations may be thrown away before that is known, and with them what its last records mean.
#[test]
fn a_thread_killed_at_a_stop_is_written_before_its_translations_are_thrown_away() {
    let program = compile("exit_while_running.c", &[]);
    let mut killed = 0;
    for stops in (20..480).step_by(if is_whole() { 1 } else { 14 }) {
        let recorded = record(&format!("engine=translate throw={stops} kill={stops}"), &program, &[]);
        let trace = recorded.trace();
        killed += u32::from(trace.finish().unwrap().signal == Some(9));
    }
    assert!(killed >= 20, "{killed} programs were killed");
}
