//! The extension module of the Python package lockstep: reading, replaying, recording, and tables for Arrow. What users
//! call is the package's own Python, in the folder `lockstep`.
//!
//! - Work runs on threads of its own, without Python's lock; signals and callbacks are served meanwhile ([`working`]).
//! - What fails is the package's exception, with the words and the exit status of the command; so is a panic.

mod errors;
mod recording;
mod replayed;
mod table;
mod working;

/// The part of lockstep that is not written in Python.
#[pyo3::pymodule]
mod _lockstep {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::recording::record;
    #[pymodule_export]
    use crate::replayed::{Replayed, Trace};
    #[pymodule_export]
    use crate::table::Table;

    /// The reconvergence models, as `lockstep heuristics --json` lists them.
    #[pyfunction]
    fn heuristics() -> String {
        cli::heuristics_as_json().to_string()
    }

    /// What replays measure where that is asked for: names of options, and what they are.
    #[pyfunction]
    fn measures() -> Vec<(&'static str, &'static str)> {
        let mut all: Vec<(&str, &str)> = Vec::new();
        let with_columns = replay::registry::measures().filter(|entry| !entry.columns.is_empty());
        for switch in with_columns.filter_map(|entry| entry.switch) {
            if !all.iter().any(|(name, _)| *name == switch.name) {
                all.push((switch.name, switch.help));
            }
        }
        all
    }
}
