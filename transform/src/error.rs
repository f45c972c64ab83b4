//! What can go wrong, whose fault it is, and the way out.

use std::path::PathBuf;

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, Error>;

/// A fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not LLVM IR, or is IR of another version.
    #[error("{name}: LLVM 19 cannot read this as IR: {text}; give a file that clang 19 or LLVM 19 wrote")]
    BadIr {
        /// The file.
        name: String,
        /// What LLVM says.
        text: String,
    },
    /// A pass of this name does not exist, or cannot be asked for so.
    #[error(transparent)]
    Parameters(#[from] parameters::Error),
    /// The compiler is not there.
    #[error("compiling: {program} is not installed ({source}); on Debian: {APT_LINE}")]
    NoCompiler {
        /// The program that was to be run.
        program: String,
        /// Why it does not run.
        source: std::io::Error,
    },
    /// The compiler, or what it runs, is there, but does not start.
    #[error("compiling: {program} cannot be started: {source}; check that it is a program that this system can run")]
    Start {
        /// The program that was to be run.
        program: String,
        /// Why it does not run.
        source: std::io::Error,
    },
    /// The compiler refuses a source; its messages went to standard error.
    #[error("{}: does not compile; pass options to the compiler after --", path.display())]
    NotCompiled {
        /// The source.
        path: PathBuf,
    },
    /// The compiler says something that is not understood.
    #[error("{program} -### prints a list of jobs that cannot be read: {text}; clang 19 is needed")]
    Jobs {
        /// The compiler.
        program: String,
        /// What is wrong with it.
        text: String,
    },
    /// The argument that was named as a thread's number does not exist.
    #[error("analysing: --tid {name}: {text}; give FUNCTION:ARGUMENT")]
    NoArgument {
        /// What was asked for.
        name: String,
        /// What is wrong with it.
        text: String,
    },
    /// A pass found its own work wrong. The module is in no known state and must not be used.
    #[error("a bug in lockstep: the pass {pass} found its own work wrong: {why}")]
    Refused {
        /// The pass.
        pass: &'static str,
        /// What was wrong.
        why: String,
    },
    /// A bug in a pass or around it.
    #[error("a bug in lockstep: {0}")]
    Bug(String),
}

/// How Debian gets what this crate needs.
pub const APT_LINE: &str = "apt-get install --no-install-recommends clang-19 llvm-19-dev libomp-19-dev";
