//! What can go wrong with a trace, whose fault it is, and where.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What was being done to a file when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It was opened to be read.
    Open,
    /// It was read.
    Read,
    /// Its bytes were decompressed.
    Decompress,
    /// It was made.
    Create,
    /// It was written.
    Write,
    /// Bytes for it were compressed.
    Compress,
}

impl Action {
    /// Whether the file was to be written, rather than read.
    #[must_use]
    pub fn is_of_output(self) -> bool {
        match self {
            Action::Create | Action::Write | Action::Compress => true,
            Action::Open | Action::Read | Action::Decompress => false,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Open => "open",
            Action::Read => "read",
            Action::Decompress => "decompress",
            Action::Create => "create",
            Action::Write => "write",
            Action::Compress => "compress",
        })
    }
}

/// An error of reading or writing a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened, read or written.
    #[error("{path}: cannot {action}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: Action,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The file is not a trace.
    #[error("{path}: not a trace: {reason}", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// The trace was written by another version of the format.
    #[error("{path}: the file has trace format version {found}, and this program reads versions 1 to {supported}: \
         {way_out}", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: u32,
        /// The newest version that can be read.
        supported: u32,
        /// What the user can do.
        way_out: &'static str,
    },
    /// The trace is of a program for another kind of processor.
    #[error("{path}: the trace is of a program for {found}, and this program knows the instructions of x86-64 alone: \
         read it with a lockstep that was made for {found}, or record the program on x86-64", path = path.display())]
    Architecture {
        /// The file.
        path: PathBuf,
        /// What the trace says.
        found: String,
    },
    /// The trace is damaged.
    #[error("{path}: damaged at byte {offset}: {fault}; copy the file again or record the program again", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in the file, in bytes; the start of the chunk for faults inside compressed data.
        offset: u64,
        /// What is wrong.
        fault: String,
    },
    /// The content does not fit into a trace.
    #[error("{path}: too large for a trace: {what}", path = path.display())]
    Limit {
        /// The file.
        path: PathBuf,
        /// What is too large, and the limit.
        what: String,
    },
    /// The work on the trace was asked to end: see [`Stop`](crate::Stop).
    #[error("stopped, as was asked for")]
    Stopped,
    /// A text trace has a line that cannot be read.
    #[error("{path}: line {line}: {fault}", path = path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        fault: String,
    },
}

/// The result of reading or writing a trace.
pub type Result<T, E = Error> = std::result::Result<T, E>;
