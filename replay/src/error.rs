//! What can go wrong in a replay, and whose fault it is.

/// An error of a replay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] trace_format::Error),
    /// This trace cannot give what was asked for; the text says why and what to do.
    #[error("{0}")]
    Request(String),
    /// A heuristic's name or parameter is wrong.
    #[error(transparent)]
    Heuristic(#[from] heuristics::ParseError),
    /// A heuristic or the engine broke a rule of the replay: a bug of this program.
    #[error("{0} (a bug in lockstep: please report it with the trace)")]
    Bug(String),
    /// A result could not be written.
    #[error("{path}: cannot write: {source}", path = path.display())]
    Write {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// The result of a step of a replay.
pub type Result<T> = std::result::Result<T, Error>;
