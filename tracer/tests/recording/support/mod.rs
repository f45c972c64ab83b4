//! Compiles the test programs, runs them as they are and under the tracer, and checks what was recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;
use trace_format::{Event, Item, SyncFunction, ThreadId, Trace};

pub mod chain;
pub mod group;
pub mod steps;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// A name of its own in the folder of this test process. All are of one length, since programs inherit some in their
/// environment, whose length moves their stacks.
pub fn place(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let folder = FOLDER.path().join(format!("{:06}", COUNT.fetch_add(1, Ordering::Relaxed)));
    fs::create_dir(&folder).unwrap();
    folder.join(name)
}

/// Whether `scripts/check --whole` runs the tests. Without it those that take long do a part of what they can.
pub fn is_whole() -> bool {
    std::env::var_os("LOCKSTEP_WHOLE").is_some()
}

/// Compiles a program of the folder `programs`.
pub fn compile(source: &str, flags: &[&str]) -> PathBuf {
    compile_with(if source.ends_with(".cpp") { "g++" } else { "gcc" }, source, flags)
}

/// The same with a compiler of choice.
pub fn compile_with(compiler: &str, source: &str, flags: &[&str]) -> PathBuf {
    let program = place(Path::new(source).file_stem().unwrap().to_str().unwrap());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let bare: &[&str] = if source.ends_with(".S") { &["-nostdlib", "-static"] } else { &["-O1", "-pthread"] };
    let output = Command::new(compiler).args(bare).arg("-o").arg(&program).arg(path).args(flags).output().unwrap();
    assert!(output.status.success(), "{compiler} {source}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// The example `record`: `cargo test` builds it beside the tests, `cargo test --test NAME` does not.
pub fn recorder() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/record");
    assert!(program.exists(), "first run `cargo build -p tracer --examples`");
    program
}

/// What came of a recording.
pub struct Recorded {
    pub output: Output,
    pub outcome: String,
    pub path: PathBuf,
}

impl Recorded {
    /// The program's own output.
    pub fn stdout(&self) -> String {
        String::from_utf8(self.output.stdout.clone()).unwrap()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8(self.output.stderr.clone()).unwrap()
    }

    /// The number in the outcome with this name.
    pub fn number(&self, name: &str) -> u64 {
        let (_, rest) = self.outcome.split_once(&format!(" {name}: ")).expect("the outcome has it");
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    }

    /// The trace, checked: it is whole, each block follows from the one before, and the stack pointers agree with the
    /// code.
    pub fn trace(&self) -> Trace {
        let trace = Trace::open(&self.path).unwrap();
        let said = format!("{}; {}; {}", self.output.status, self.stderr(), self.outcome);
        assert!(trace.recovered().is_none(), "{:?}; {said}", trace.recovered());
        assert!(trace.finish().is_some(), "the trace has no end; {said}");
        chain::check(&trace);
        trace
    }
}

/// The command that records a program, in a small environment: the C library reads all of it at each start, in `cargo
/// test`'s for some hundred thousand instructions of `step`.
pub fn record_command(options: &str, trace: &Path, program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(recorder());
    command.arg(trace).arg(program).args(arguments);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("RECORD_OPTIONS", options);
    command
}

/// Records a program.
pub fn record(options: &str, program: &Path, arguments: &[&str]) -> Recorded {
    let (path, file) = (place("trace.bin"), place("outcome"));
    let output = record_command(options, &path, program, arguments).env("RECORD_OUTCOME", &file).output().unwrap();
    let outcome = fs::read_to_string(file).unwrap_or_default();
    Recorded { output, outcome, path }
}

/// Records a program with each engine and asserts that its outputs and its exit status are what they are without, and
/// that the traces hang together. Returns what came of `translate`.
pub fn assert_like_native(program: &Path, arguments: &[&str]) -> Recorded {
    let native = Command::new(program).args(arguments).output().unwrap();
    recorded_like(&native, "engine=step", program, arguments).trace();
    recorded_like(&native, "engine=translate", program, arguments)
}

/// The same with the engine `step` alone, for what only that one does so.
pub fn assert_step_like_native(program: &Path, arguments: &[&str]) -> Recorded {
    let native = Command::new(program).args(arguments).output().unwrap();
    recorded_like(&native, "engine=step", program, arguments)
}

fn recorded_like(native: &Output, options: &str, program: &Path, arguments: &[&str]) -> Recorded {
    use std::os::unix::process::ExitStatusExt;
    let recorded = record(options, program, arguments);
    assert_eq!(recorded.stdout(), String::from_utf8_lossy(&native.stdout), "stdout; stderr: {}", recorded.stderr());
    assert_eq!(recorded.stderr(), String::from_utf8_lossy(&native.stderr), "stderr");
    let status = native.status.code().or_else(|| native.status.signal().map(|n| 128 + n));
    assert_eq!(recorded.output.status.code(), status, "exit status; {}", recorded.outcome);
    recorded
}

/// All events of a thread.
pub fn events(trace: &Trace, thread: u32) -> Vec<Event> {
    let mut stream = trace.stream(ThreadId(thread));
    let mut events = Vec::new();
    while let Some(item) = stream.next().unwrap() {
        if let Item::Event(event) = item {
            events.push(event);
        }
    }
    events
}

/// All events of all threads.
pub fn all_events(trace: &Trace) -> Vec<Event> {
    trace.threads().iter().flat_map(|thread| events(trace, thread.id.0)).collect()
}

/// The objects and arguments with which a function was entered, over all threads, sorted.
pub fn entries(trace: &Trace, wanted: SyncFunction) -> Vec<(u64, u64)> {
    let mut entries: Vec<_> = all_events(trace)
        .into_iter()
        .filter_map(|event| match event {
            Event::Enter { function, object, argument, .. } if function == wanted => Some((object, argument)),
            _ => None,
        })
        .collect();
    entries.sort_unstable();
    entries
}

/// How often a function was left, over all threads.
pub fn leaves(trace: &Trace, wanted: SyncFunction) -> usize {
    all_events(trace).iter().filter(|e| matches!(e, Event::Leave { function, .. } if *function == wanted)).count()
}
