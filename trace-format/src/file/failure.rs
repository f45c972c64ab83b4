//! The first error of writing, which every later call that writes returns again.

use std::io;
use std::path::Path;

use crate::{Action, Error, Result};

/// What the first error was, so that it can be given again.
pub(crate) struct Failure {
    action: Action,
    code: Option<i32>,
    kind: io::ErrorKind,
    text: String,
}

impl Failure {
    /// The error, for the file of that name.
    pub(crate) fn error(&self, name: &Path) -> Error {
        let source = match self.code {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(self.kind, self.text.clone()),
        };
        Error::Io { path: name.to_owned(), action: self.action, source }
    }
}

/// Remembers the first error, and gives it.
pub(crate) fn note(failed: &mut Option<Failure>, name: &Path, action: Action, done: io::Result<()>) -> Result<()> {
    let Err(e) = done else { return Ok(()) };
    let failure = Failure { action, code: e.raw_os_error(), kind: e.kind(), text: e.to_string() };
    Err(failed.get_or_insert(failure).error(name))
}
