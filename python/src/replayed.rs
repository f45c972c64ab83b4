//! Traces, and what replays of them find.

use std::ffi::OsString;
use std::panic::catch_unwind;
use std::path::PathBuf;

use cli::Called;
use pyo3::prelude::*;
use replay::Error;
use serde_json::json;
use trace_format::Stop;

use crate::errors::{panicked, raised};
use crate::table::{self, Table};
use crate::working::working;

/// A recorded run, open for replays. It can be used by several threads at once.
#[pyclass(frozen, module = "lockstep._lockstep")]
pub(crate) struct Trace {
    trace: trace_format::Trace,
    path: PathBuf,
}

/// What a replay found.
#[pyclass(frozen, get_all, module = "lockstep._lockstep")]
pub(crate) struct Replayed {
    /// A row for each model: the columns of `replay --csv`.
    rows: Py<Table>,
    /// Lost lane-slots, where they were asked for by something.
    lost: Option<Py<Table>>,
    /// A row for each lane: the columns of `replay --lanes-out`.
    lanes: Py<Table>,
    /// The verdict as JSON, with its lines and its efficiency; none without a machine's figure.
    verdict: Option<String>,
    /// What was replayed, and what was left out.
    view: String,
    /// What the command says besides.
    notes: Vec<String>,
}

#[pymethods]
impl Trace {
    /// Opens a trace: what `trace` wrote, or a text trace, gzipped or not.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Trace> {
        let opened = py.detach(|| catch_unwind(|| trace_format::Trace::open(&path)));
        match opened {
            Ok(Ok(trace)) => Ok(Trace { trace, path }),
            Ok(Err(error)) => Err(raised(&error.into())),
            Err(panic) => Err(panicked(&*panic)),
        }
    }

    /// The trace's file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The program that was recorded, and its arguments.
    #[getter]
    fn command(&self) -> Vec<String> {
        self.trace.meta().command.clone()
    }

    /// How many threads were recorded.
    #[getter]
    fn threads(&self) -> usize {
        self.trace.threads().len()
    }

    /// How many instructions they ran together.
    #[getter]
    fn instructions(&self) -> u64 {
        self.trace.instructions()
    }

    /// Whether the addresses of memory operands were recorded.
    #[getter]
    fn has_addresses(&self) -> bool {
        self.trace.meta().memory
    }

    /// What part of the file was lost, as a sentence; none of a whole one.
    #[getter]
    fn recovered(&self) -> Option<String> {
        self.trace.recovered().map(str::to_owned)
    }

    /// Replays with options of the command, in this many threads; `progress` is called with replays done and all.
    #[pyo3(signature = (options, workers, progress))]
    fn replay(
        &self,
        py: Python<'_>,
        options: Vec<OsString>,
        workers: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Replayed> {
        let stop = Stop::default();
        let trace = self.trace.with_stop(&stop);
        let mut words = options;
        words.extend(["--".into(), self.path.clone().into_os_string()]);
        let called = working(py, &stop, progress.as_ref(), |told| {
            // Threads of its own: those that a process shares are gone in one that was forked from it.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(workers.unwrap_or(0)).build();
            let pool = pool.map_err(|e| Error::Request(format!("cannot start workers: {e}: ask for fewer")))?;
            pool.install(|| Called::new(&words, &trace, told))
        })?;
        Replayed::of(py, &called)
    }
}

impl Replayed {
    fn of(py: Python<'_>, called: &Called) -> PyResult<Replayed> {
        let Called { json, verdict, by_rule, notes } = called;
        let verdict = verdict.as_ref().map(|verdict| {
            let mut all = verdict.json();
            all["lines"] = json!(verdict.lines());
            // Not the number that the command's JSON has beside `holds`: it may mean nothing.
            all["efficiency"] = json!(verdict.efficiency());
            all["at_most"] = json!(verdict.at_most());
            all.to_string()
        });
        let is_lost_known = by_rule.iter().any(|of| of.by.is_some());
        let lost = is_lost_known.then(|| Py::new(py, table::lost(by_rule)?)).transpose()?;
        Ok(Replayed {
            rows: Py::new(py, table::rows(by_rule)?)?,
            lost,
            lanes: Py::new(py, table::lanes(by_rule)?)?,
            view: json["view"].as_str().unwrap_or_default().to_owned(),
            verdict,
            notes: notes.clone(),
        })
    }
}
