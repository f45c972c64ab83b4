//! What can go wrong with rows and charts, where, and the way out.

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
    /// A device or a pipe was opened to be written.
    OpenToWrite,
    /// A new file was made in its folder.
    Create,
    /// It was written.
    Write,
    /// The new file was given the permissions of the one that it replaces.
    KeepPermissions,
    /// The finished file was given its name.
    Place,
}

impl Action {
    /// Whether the file was to be written, rather than read.
    #[must_use]
    pub fn is_of_output(self) -> bool {
        match self {
            Action::Open | Action::Read => false,
            Action::OpenToWrite | Action::Create | Action::Write | Action::KeepPermissions | Action::Place => true,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Open => "open",
            Action::Read => "read",
            Action::OpenToWrite => "open for writing",
            Action::Create => "write into its folder",
            Action::Write => "write",
            Action::KeepPermissions => "keep its permissions",
            Action::Place => "put the finished file in its place",
        })
    }
}

/// An error of reading rows or of drawing a chart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: cannot {action}: {source}{way_out}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: Action,
        /// Why it failed.
        #[source]
        source: io::Error,
        /// What the user can do, from the colon on; empty where nothing is known.
        way_out: &'static str,
    },
    /// The file holds no rows at all.
    #[error("{path}: there are no rows in it: write some with `replay --heuristic all --csv FILE TRACE`", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The header lacks a column, or has it twice.
    #[error("{path}: line {line}: {fault}: give a file with the columns that `replay --csv` writes", path = path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The header's line, from 1.
        line: u64,
        /// What is wrong.
        fault: String,
    },
    /// A line does not belong to such a table.
    #[error("{path}: line {line}: {fault}", path = path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong, and what to do.
        fault: String,
    },
    /// A field has an impossible value.
    #[error("{path}: line {line}, column {column}: {fault}", path = path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The column's name.
        column: &'static str,
        /// What is wrong, and what to do.
        fault: String,
    },
    /// The extension of the file to write names no known format.
    #[error("{path}: {fault}: charts can be written as {possible}", path = path.display())]
    Extension {
        /// The file.
        path: PathBuf,
        /// What is wrong with its name.
        fault: String,
        /// The extensions that there are.
        possible: String,
    },
    /// There is no chart of that name.
    #[error("there is no chart named {kind:?}: choose one of {possible}")]
    UnknownKind {
        /// The name that was given.
        kind: String,
        /// The names that there are.
        possible: String,
    },
    /// Shares were asked for of a chart that has none.
    #[error("cannot draw shares in a chart of kind {kind}: leave out --shares, or choose a kind that can ({possible})")]
    NoShares {
        /// The chart's name.
        kind: &'static str,
        /// The charts that have shares.
        possible: String,
    },
    /// The rows are of one program, one number of lanes or one warp size, and the chart compares several.
    #[error("cannot draw a chart of kind {kind} from these rows: it needs {lacks}; choose another --kind, or add rows")]
    TooFew {
        /// The chart's name.
        kind: &'static str,
        /// What it needs.
        lacks: &'static str,
    },
    /// A condition names a column that the file does not have.
    #[error("{path}: there is no column {column:?} among {possible}", path = path.display())]
    UnknownColumn {
        /// The file.
        path: PathBuf,
        /// The name that was given.
        column: String,
        /// The columns that there are.
        possible: String,
    },
    /// No row meets the conditions.
    #[error("{path}: none of its {rows} rows meets all conditions", path = path.display())]
    NoneMeets {
        /// The file.
        path: PathBuf,
        /// How many rows it has.
        rows: usize,
    },
    /// There are no rows to draw.
    #[error("there are no rows to draw: write some with `replay --heuristic all --csv FILE TRACE`")]
    NothingToDraw,
}

impl Error {
    /// Whether the fault lies with the file to be written.
    #[must_use]
    pub fn is_of_output(&self) -> bool {
        matches!(self, Error::Io { action, .. } if action.is_of_output())
    }

    /// Whether the fault lies with what was asked for.
    #[must_use]
    pub fn is_of_request(&self) -> bool {
        matches!(
            self,
            Error::Extension { .. }
                | Error::UnknownKind { .. }
                | Error::NoShares { .. }
                | Error::TooFew { .. }
                | Error::UnknownColumn { .. }
                | Error::NoneMeets { .. }
        )
    }
}

/// The result of reading rows or of drawing a chart.
pub type Result<T> = std::result::Result<T, Error>;
