//! The list of engines, and the functions that callers use first.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::engine::{Engine, Outcome, TraceOptions, TranslationLimits};
use crate::error::{Error, Result};
use crate::kernel::interrupt::Interrupt;
use crate::remembered::Remember;
use crate::step::Step;
use crate::translate::Translate;
use crate::window::Window;

/// Every engine; the first is the default.
pub const ENGINES: &[&dyn Engine] = &[&Translate::PLAIN, &Step];

/// The engine of that name.
pub fn engine_named(name: &str) -> Result<&'static dyn Engine> {
    ENGINES.iter().copied().find(|engine| engine.name() == name).ok_or_else(|| Error::UnknownEngine {
        name: name.to_owned(),
        known: ENGINES.iter().map(|engine| engine.name()).collect::<Vec<_>>().join(", "),
    })
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
