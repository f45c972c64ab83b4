//! The interface that all engines share: options and outcome.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::kernel::interrupt::Interrupt;
use crate::limit::Limit;
use crate::remembered::Remember;
use crate::usage::{RunTimes, TranslationUse};
use crate::window::Window;

/// A way to run a program and see each of its instructions.
pub trait Engine: Sync {
    /// Its name, as typed.
    fn name(&self) -> &'static str;

    /// What it is, in one line.
    fn description(&self) -> &'static str;

    /// Runs the program to its end and records it.
    fn run(&self, options: &TraceOptions) -> Result<Outcome>;
}

/// Called every now and then while a program is recorded, from the thread that called [`crate::trace`].
pub type ProgressCallback = Arc<dyn Fn(Progress) + Send + Sync>;

/// What to run and how to record it.
#[derive(Clone)]
pub struct TraceOptions {
    /// The engine. Default: the first of [`crate::ENGINES`].
    pub engine: &'static dyn Engine,
    /// The program, found in `PATH` when it has no slash, and its arguments.
    pub command: Vec<OsString>,
    /// The trace file, which is overwritten.
    pub output: PathBuf,
    /// Whether processes that the program forks are recorded too; the recording ends when all of them have ended. Else
    /// they run on by themselves. Default: false.
    pub follow_forks: bool,
    /// Where the recording stops; the program runs on to its end. Default: nowhere.
    pub limit: Option<Limit>,
    /// Which part of the run is recorded. Default: all of it.
    pub window: Window,
    /// Whether the addresses of memory operands are recorded. Default: false.
    pub memory: bool,
    /// Whether the kernel may place the program at random addresses; when it may not, the same run gives the same
    /// addresses. Default: false.
    pub aslr: bool,
    /// How the caller asks for an end. Default: by nothing.
    pub interrupt: Interrupt,
    /// Told about the progress. Default: none.
    pub progress: Option<ProgressCallback>,
    /// How much memory translated code takes. Default: as [`TranslationLimits`] says.
    pub translation: TranslationLimits,
    /// Where what was translated is remembered, so that the next run of the program stops less often. Default: nowhere.
    pub remember: Remember,
}

/// How much memory the engine `translate` takes for translated code, of all processes together. Beyond this, all of it
/// is thrown away, and code is translated again where it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslationLimits {
    /// Bytes of translated code in the program. Default: 40 MiB.
    pub code: u64,
    /// Bytes of bookkeeping in this process. Default: 192 MiB.
    pub bookkeeping: u64,
}

impl Default for TranslationLimits {
    fn default() -> TranslationLimits {
        // Node needs 117 MiB of bookkeeping to start; with less, all of it is translated twice.
        TranslationLimits { code: 40 << 20, bookkeeping: 192 << 20 }
    }
}

impl fmt::Debug for TraceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceOptions")
            .field("engine", &self.engine.name())
            .field("command", &self.command)
            .field("output", &self.output)
            .field("follow_forks", &self.follow_forks)
            .field("limit", &self.limit)
            .field("window", &self.window)
            .field("memory", &self.memory)
            .field("aslr", &self.aslr)
            .field("translation", &self.translation)
            .field("remember", &self.remember)
            .finish_non_exhaustive()
    }
}

/// How far a recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Instructions recorded, over all threads.
    pub instructions: u64,
    /// Threads started so far.
    pub threads: u32,
    /// Bytes written to the trace.
    pub bytes: u64,
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// The name of a signal: `SIGSEGV`.
#[must_use]
pub fn signal_name(signal: i32) -> Option<&'static str> {
    nix::sys::signal::Signal::try_from(signal).ok().map(nix::sys::signal::Signal::as_str)
}

/// The result of a recording.
#[derive(Debug)]
pub struct Outcome {
    /// How the program ended.
    pub exit: Exit,
    /// Instructions recorded, over all threads.
    pub instructions: u64,
    /// Threads recorded.
    pub threads: u32,
    /// The size of the trace in bytes.
    pub bytes: u64,
    /// Why the recording ended before the program did, if so.
    pub stopped_early: Option<String>,
    /// Why the trace is incomplete, when it could not be written (a full disk), or empty, when the program never
    /// reached its window. The program still ran to its end.
    pub failure: Option<Error>,
    /// What translated code took, where there was any.
    pub translation: TranslationUse,
    /// What the run took.
    pub times: RunTimes,
    /// What the user should know of the recording, as sentences.
    pub warnings: Vec<String>,
}
