//! Long work that leaves Python alive: it runs on threads of its own, and the thread that called serves signals and the
//! progress callback meanwhile.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use trace_format::Stop;

use crate::errors::{panicked, raised};

/// How often signals are looked for: soon enough for a person who pressed Ctrl-C.
const INTERVAL: Duration = Duration::from_millis(50);

/// How far the work is: so many of so many steps.
pub(crate) type Told<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Does the work. A signal's exception, or the callback's, asks it to end and is raised.
pub(crate) fn working<T: Send>(
    py: Python<'_>,
    stop: &Stop,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(Told) -> anyhow::Result<T> + Send,
) -> PyResult<T> {
    let (told, news) = channel::<(usize, usize)>();
    let worked = py.detach(move || {
        thread::scope(|scope| {
            let worker = scope.spawn(move || {
                work(&move |done, all| {
                    // It fails when nobody listens any more.
                    let _ = told.send((done, all));
                })
            });
            let mut refused = None;
            loop {
                let mut latest = match news.recv_timeout(INTERVAL) {
                    Ok(first) => Some(first),
                    Err(RecvTimeoutError::Timeout) => None,
                    // The worker is done.
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                latest = news.try_iter().last().or(latest);
                if refused.is_none() {
                    refused = Python::attach(|py| serve(py, progress, latest)).err();
                    if refused.is_some() {
                        stop.ask();
                    }
                }
            }
            let done = worker.join();
            refused.map_or_else(|| Ok(done), Err)
        })
    });
    match worked? {
        Ok(done) => done.map_err(|error| raised(&error)),
        Err(panic) => Err(panicked(&*panic)),
    }
}

/// Runs Python's handlers of signals that came, and the callback, if there are news.
fn serve(py: Python<'_>, progress: Option<&Py<PyAny>>, news: Option<(usize, usize)>) -> PyResult<()> {
    py.check_signals()?;
    if let (Some(progress), Some((done, all))) = (progress, news) {
        progress.call1(py, (done, all))?;
    }
    Ok(())
}
