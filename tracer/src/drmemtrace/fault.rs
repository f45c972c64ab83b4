//! What can be wrong with a file of drmemtrace's.

use std::path::Path;

use crate::error::Error;

/// What is wrong with a file, as the end of a sentence that begins with its path, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl Fault {
    /// With these words.
    pub fn of(what: impl Into<String>) -> Fault {
        Fault(what.into())
    }

    /// Of this file.
    pub fn of_file(self, path: &Path) -> Error {
        Error::Foreign { path: path.to_owned(), reason: self.0 }
    }
}
