//! A folder for files between jobs, which is removed whatever happens (except on SIGKILL), and the start of programs.
//!
//! A signal that ends this process is passed on to the program that runs, which removes its own unfinished files (of
//! SIGQUIT compilers make a crash report, which takes seconds and nobody asked for: they get SIGINT); when that has
//! ended, the folder is removed, and this process ends by the signal that came. A program that does not end is killed.
//! A signal that was ignored when this process started stays ignored.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use tempfile::TempDir;

use super::words;
use crate::{Error, Result};

/// How long a program may take to end after a signal before it is killed. The folder is removed afterwards in any case.
const PATIENCE: Duration = Duration::from_secs(5);

/// The folder, and the watch over it.
pub(super) struct Scratch {
    folder: TempDir,
    state: Arc<State>,
    watch: Option<(Handle, JoinHandle<()>)>,
}

#[derive(Default)]
struct State {
    running: Mutex<Running>,
    changed: Condvar,
}

#[derive(Default)]
struct Running {
    program: Option<Pid>,
    /// A signal came: nothing is started any more.
    ending: bool,
}

/// What becomes of the output of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Streams {
    /// It goes where ours goes.
    Ours,
    /// Standard error is kept, standard output goes where ours goes.
    KeepErrors,
    /// A question to the driver: standard error is kept, there is nothing on standard input, and nobody reads standard
    /// output.
    Question,
}

impl Scratch {
    /// A new folder.
    pub(super) fn new() -> Result<Scratch> {
        let made = tempfile::Builder::new().prefix("lockstep-cc-").tempdir();
        let folder = made.map_err(|source| Error::Write { path: std::env::temp_dir(), source })?;
        let state = Arc::new(State::default());
        let mut scratch = Scratch { folder, state, watch: None };
        scratch.watch = scratch.watch_signals();
        Ok(scratch)
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// None where signals cannot be handled: then the folder may be left behind, which is no reason not to compile.
    fn watch_signals(&self) -> Option<(Handle, JoinHandle<()>)> {
        let ignored = ignored_signals();
        let ends = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().filter(|n| ignored >> (n - 1) & 1 == 0);
        let mut signals = Signals::new(ends).ok()?;
        let handle = signals.handle();
        let (state, folder) = (Arc::clone(&self.state), self.folder.path().to_owned());
        let wait = move || {
            if let Some(signal) = signals.forever().next() {
                state.stop(signal);
                // It may be gone already. There is nobody to tell of anything else.
                let _ = std::fs::remove_dir_all(&folder);
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(wait).ok()?;
        Some((handle, thread))
    }

    /// Runs a program to its end; the first word is its name. Words that are too many or too long for the kernel go
    /// through a response file, which compilers, linkers and archivers understand.
    ///
    /// # Errors
    /// [`Error::NoCompiler`] when there is no such program, [`Error::Start`] when it cannot be started for another
    /// reason.
    pub(super) fn run(&self, program: &OsStr, arguments: &[OsString], streams: Streams) -> Result<Output> {
        self.run_in(&[], program, arguments, streams)
    }

    /// As [`Scratch::run`], with these variables in the program's environment.
    pub(super) fn run_in(
        &self,
        environment: &[(&str, OsString)],
        program: &OsStr,
        arguments: &[OsString],
        streams: Streams,
    ) -> Result<Output> {
        let started = match self.start(environment, program, arguments, streams) {
            Err(error) if error.kind() == ErrorKind::ArgumentListTooLong => {
                let file = self.path().join("arguments");
                std::fs::write(&file, words::quoted(arguments))
                    .map_err(|source| Error::Write { path: file.clone(), source })?;
                let mut word = OsString::from("@");
                word.push(&file);
                self.start(environment, program, &[word], streams)
            }
            started => started,
        };
        let finished = started.and_then(Child::wait_with_output);
        self.state.ended();
        finished.map_err(|source| {
            let program = program.display().to_string();
            match source.kind() {
                ErrorKind::NotFound => Error::NoCompiler { program, source },
                _ => Error::Start { program, source },
            }
        })
    }

    fn start(
        &self,
        environment: &[(&str, OsString)],
        program: &OsStr,
        arguments: &[OsString],
        streams: Streams,
    ) -> std::io::Result<Child> {
        let mut command = Command::new(program);
        command.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
        if streams != Streams::Ours {
            command.stderr(Stdio::piped());
        }
        if streams == Streams::Question {
            // The driver makes up names for files that pass between jobs: in a folder of our own nobody else takes them
            // meanwhile.
            command.stdin(Stdio::null()).stdout(Stdio::null()).env("TMPDIR", self.path());
        }
        let mut running = self.state.lock();
        if running.ending {
            drop(running);
            wait_for_the_end();
        }
        let child = command.spawn()?;
        running.program = Some(Pid::from_raw(child.id().cast_signed()));
        Ok(child)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some((handle, thread)) = self.watch.take() {
            handle.close();
            // It has nothing to say; a panic of it was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Keeps other programs from being started and has the one that runs end by this signal, or be killed.
    fn stop(&self, signal: i32) {
        let gentle = match Signal::try_from(signal) {
            Ok(Signal::SIGQUIT) | Err(_) => Signal::SIGINT,
            Ok(signal) => signal,
        };
        self.lock().ending = true;
        for signal in [gentle, Signal::SIGKILL] {
            let running = self.lock();
            let Some(program) = running.program else { return };
            // It may have ended this moment.
            let _ = kill(program, signal);
            drop(self.changed.wait_timeout_while(running, PATIENCE, |running| running.program.is_some()));
        }
    }

    /// The program has ended.
    fn ended(&self) {
        let mut running = self.lock();
        running.program = None;
        self.changed.notify_all();
        if running.ending {
            drop(running);
            wait_for_the_end();
        }
    }
}

/// Lets the thread that watches signals end this process.
fn wait_for_the_end() -> ! {
    loop {
        std::thread::park();
    }
}

/// A bit for each signal that is ignored, signal 1 in the lowest.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
