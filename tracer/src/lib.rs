//! Runs a program and records every thread's instruction stream.
//!
//! An [`Engine`] runs the program and sees each instruction. [`ENGINES`] has two: `translate`, close to native speed,
//! and `step`, slow and simple, which judges it. Everything that does not depend on the engine is outside of the
//! engines: system calls and signal frames (`calls`, `frames`), finding and starting the program (`program`), its
//! modules and symbols (`modules`, `copies`, `elf`, `symbols`, `linkage`), what instructions mean to the trace
//! (`decode`, `blocks`), the synchronisation functions (`sync_functions`, `sync_stack`), which part of the run is
//! recorded (`window`, `switch`), on which processor it runs (`together`), how a run begins and ends (`run`), what is
//! remembered of earlier runs (`remembered`) and writing (`recorder`). The kernel's interface, and with it all
//! `unsafe`, is in the folder `ptrace`. What another tool has recorded becomes a trace in `drmemtrace`.

mod decode;
mod drmemtrace;
mod engine;
mod engines;
mod error;
mod images;
mod kernel;
mod limit;
mod program;
mod record;
mod remembered;
mod run;
mod step;
mod switch;
mod translate;
mod usage;
mod window;

pub use drmemtrace::{Converted, convert as convert_drmemtrace, functions as drmemtrace_functions};
pub use engine::{Engine, Exit, Outcome, Progress, ProgressCallback, TraceOptions, TranslationLimits, signal_name};
pub use engines::{ENGINES, engine_named, trace};
pub use error::{Error, Result};
pub use kernel::interrupt::Interrupt;
pub use kernel::ptrace::use_large_pages;
pub use limit::Limit;
pub use remembered::Remember;
#[doc(hidden)]
pub use translate::{Hooks, Translate};
pub use usage::{Counted, Records, RunTimes, StopCauses, ThrownAway, Times, TranslationUse};
pub use window::Window;
