//! Errors as the package's exception.

use std::any::Any;

use pyo3::PyErr;

pyo3::import_exception!(lockstep, Error);

/// The exit status of the command for a bug.
const BUG: u8 = 70;

/// The exception of an error, with the command's words and exit status.
pub(crate) fn raised(error: &anyhow::Error) -> PyErr {
    let (status, words) = cli::status_and_words(error);
    Error::new_err((words, status))
}

/// The exception of a panic.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    Error::new_err((bug(panic), BUG))
}

/// The exit status and the words of a panic.
pub(crate) fn status_and_words(panic: &(dyn Any + Send)) -> (u8, String) {
    (BUG, bug(panic))
}

fn bug(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("{} (a bug in lockstep: please report it with the trace)", said.unwrap_or("a panic"))
}
