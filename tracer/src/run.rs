//! How a run begins and ends, whatever engine sees its instructions.

use nix::libc;
use trace_format::Finish;

use crate::engine::{Exit, Outcome, TraceOptions};
use crate::error::{Error, Result};
use crate::images::modules::Images;
use crate::kernel::interrupt::Watch;
use crate::kernel::ptrace::{self, ProcessHandle, Stop, Tid};
use crate::program::Program;
use crate::record::recorder::Recorder;
use crate::switch::Switch;
use crate::usage::{Stopwatch, TranslationUse};

/// A program that has not run yet: it stands at its exec event.
pub struct Launched {
    /// Its first thread.
    pub main: Tid,
    /// A handle of its process; none when that is gone already.
    pub handle: Option<ProcessHandle>,
    /// What writes the trace.
    pub recorder: Recorder,
    /// Runs since the launch.
    pub stopwatch: Stopwatch,
}

impl Launched {
    /// Launches the program of the options, to be traced with these options of ptrace.
    ///
    /// # Errors
    /// When there is no such program, it cannot be started, or the trace cannot be written.
    pub fn new(options: &TraceOptions, ptrace_options: i32) -> Result<Launched> {
        let program = Program::find(&options.command)?;
        let stopwatch = Stopwatch::start();
        let main = program.launch(options.aslr, ptrace_options)?;
        let handle = ProcessHandle::open(main).ok();
        match Recorder::create(options) {
            Ok(recorder) => Ok(Launched { main, handle, recorder, stopwatch }),
            Err(error) => {
                abandon(main);
                Err(error.into())
            }
        }
    }
}

/// Ends a program that has not run yet.
pub fn abandon(main: Tid) {
    let killed = ProcessHandle::open(main).is_ok_and(|handle| handle.send(libc::SIGKILL).is_ok());
    while killed && let Ok(Some((tid, stop))) = ptrace::wait_any(true) {
        match stop {
            Stop::Exited(_) | Stop::Killed(_) if tid == main => return,
            Stop::Exited(_) | Stop::Killed(_) => {}
            Stop::Signal(_) | Stop::Event { .. } => drop(ptrace::resume(tid, 0)),
        }
    }
}

/// The results of a run so far.
#[derive(Default)]
pub struct Findings {
    /// How the program ended, once it has.
    pub exit: Option<Exit>,
    /// Why the recording ended before the program did, if so.
    pub stopped_early: Option<String>,
    /// What the user should know of the recording, as sentences.
    pub warnings: Vec<String>,
    /// What translated code took.
    pub translation: TranslationUse,
}

impl Findings {
    /// Ends the trace and returns the results. No process of the program is left, or none is recorded any more.
    pub fn finish(
        mut self,
        recorder: Recorder,
        switch: &Switch,
        images: &Images,
        watch: &Watch,
        stopwatch: &Stopwatch,
    ) -> Outcome {
        let exit = self.exit.unwrap_or(Exit::Signalled(libc::SIGKILL));
        if watch.killed() {
            self.stopped_early.get_or_insert_with(|| "the program was interrupted".to_owned());
        }
        let (exit_status, signal) = match exit {
            Exit::Exited(status) => (Some(status), None),
            Exit::Signalled(signal) => (None, Some(signal)),
        };
        let never_began = switch.never_began(images);
        self.warnings.extend(switch.never_ended(images));
        let stopped_early = never_began.as_ref().or(self.stopped_early.as_ref()).cloned();
        let (progress, failure) = recorder.finish(&Finish { exit_status, signal, stopped_early });
        Outcome {
            exit,
            instructions: progress.instructions,
            threads: progress.threads,
            bytes: progress.bytes,
            stopped_early: self.stopped_early,
            failure: failure.map(Error::from).or(never_began.map(|reason| Error::NeverBegan { reason })),
            translation: self.translation,
            times: stopwatch.read(),
            warnings: self.warnings,
        }
    }
}
