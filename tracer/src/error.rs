//! What can go wrong before a program runs under the tracer.

use std::io;
use std::path::PathBuf;

/// An error of starting or recording a program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No command was given.
    #[error("no program given: name the program to trace and its arguments")]
    NoCommand,
    /// The program does not exist.
    #[error("{name}: program not found{hint}")]
    NotFound {
        /// As it was typed.
        name: String,
        /// Where it was looked for, as the end of a sentence.
        hint: &'static str,
    },
    /// The program may not be executed.
    #[error("{path}: not executable: {reason}", path = path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: &'static str,
    },
    /// The program is not one that can be recorded.
    #[error("{path}: cannot be recorded: {reason}", path = path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Why not, and the way out.
        reason: String,
    },
    /// The program could not be started.
    #[error("{path}: cannot start: {source}", path = path.display())]
    Start {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// What another tool recorded cannot be read.
    #[error("{path}: cannot be converted: {reason}", path = path.display())]
    Foreign {
        /// The file or folder.
        path: PathBuf,
        /// Why not, and the way out.
        reason: String,
    },
    /// The kernel does not allow tracing.
    #[error("cannot trace: {reason}")]
    Denied {
        /// Why not, and the way out.
        reason: String,
    },
    /// The trace could not be written. When that happens while the program runs, the program runs on to its own end
    /// first, and the error is in [`Outcome::failure`](crate::Outcome::failure).
    #[error(transparent)]
    Trace(#[from] trace_format::Error),
    /// The program never reached the part of its run that was to be recorded. Found at its end, and returned in
    /// [`Outcome::failure`](crate::Outcome::failure).
    #[error("nothing was recorded: {reason}")]
    NeverBegan {
        /// Why not, with similar names where it is a name that was not found.
        reason: String,
    },
    /// No engine has that name.
    #[error("no engine is called {name}: there is {known}")]
    UnknownEngine {
        /// As it was typed.
        name: String,
        /// Those that there are.
        known: String,
    },
}

/// The result of starting and recording a program.
pub type Result<T> = std::result::Result<T, Error>;
