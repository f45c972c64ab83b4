//! What all engines share for their callers: options, outcome, and the list of engines.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::limit::Limit;
use crate::remembered::Remember;
use crate::step::Step;
use crate::translate::Translate;
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

/// Every engine; the first is the default.
pub const ENGINES: &[&dyn Engine] = &[&Translate::PLAIN, &Step];

/// The engine of that name.
pub fn engine_named(name: &str) -> Result<&'static dyn Engine> {
    ENGINES.iter().copied().find(|engine| engine.name() == name).ok_or_else(|| Error::UnknownEngine {
        name: name.to_owned(),
        known: ENGINES.iter().map(|engine| engine.name()).collect::<Vec<_>>().join(", "),
    })
}

/// Called every now and then while a program is recorded, from the thread that called [`trace`].
pub type ProgressCallback = Arc<dyn Fn(Progress) + Send + Sync>;

/// What to run and how to record it.
#[derive(Clone)]
pub struct TraceOptions {
    /// The engine. Default: the first of [`ENGINES`].
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

/// How much memory the engine `translate` takes for translated code, of all processes together. Beyond, all of it is
/// thrown away and made anew where it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslationLimits {
    /// Bytes of translated code in the program. Default: 40 MiB.
    pub code: u64,
    /// Bytes of bookkeeping in this process. Default: 192 MiB.
    pub bookkeeping: u64,
}

impl Default for TranslationLimits {
    fn default() -> TranslationLimits {
        // What node needs to start takes 117 MiB of bookkeeping; with less, all of it is translated twice.
        TranslationLimits { code: 40 << 20, bookkeeping: 192 << 20 }
    }
}

impl TraceOptions {
    /// The defaults for this command and output.
    #[must_use]
    pub fn new(command: Vec<OsString>, output: impl Into<PathBuf>) -> TraceOptions {
        TraceOptions {
            engine: ENGINES[0],
            command,
            output: output.into(),
            follow_forks: false,
            limit: None,
            window: Window::default(),
            memory: false,
            aslr: false,
            interrupt: Interrupt::default(),
            progress: None,
            translation: TranslationLimits::default(),
            remember: Remember::Nowhere,
        }
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

/// What came of a recording.
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
    /// Why the trace is incomplete, when it could not be written (a full disk), or empty, when the program never came
    /// to its window. The program ran to its end all the same.
    pub failure: Option<Error>,
    /// What translated code took, where there was any.
    pub translation: TranslationUse,
    /// What the run took.
    pub times: RunTimes,
    /// What the user should know of the recording, as sentences.
    pub warnings: Vec<String>,
}

/// Runs the program to its end and records it with the engine of the options.
pub fn trace(options: &TraceOptions) -> Result<Outcome> {
    options.engine.run(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_found_by_name() {
        for engine in ENGINES {
            assert_eq!(engine_named(engine.name()).unwrap().name(), engine.name());
            assert!(!engine.description().is_empty());
        }
        let error = engine_named("magic").err().unwrap().to_string();
        assert!(error.contains("magic") && error.contains("step"), "{error}");
    }
}
