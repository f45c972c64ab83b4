//! Recording, in a process of its own: Python starts one of its interpreters that calls [`record`] and nothing else.
//!
//! A recorder stops and wakes the program by ptrace, forks it, and takes this process's signals. Beside the threads of
//! a notebook each of these would do harm: handlers of forks that libraries have set up would run, the memory for
//! translated code would stay, and what goes wrong in the recorder would take the notebook with it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use serde_json::{Value, json};
use tracer::{Exit, Interrupt, Outcome, Progress};

use crate::errors::status_and_words;

/// How long a signal has that comes both to the caller and to this process.
const PATIENCE: Duration = Duration::from_millis(100);

/// Records as `trace` does with these words, and writes to the descriptor `news` lines of JSON: how far it is, and at
/// last what came of it. When `orders` comes to its end, the caller wants no more, or is gone: the program is ended.
#[pyfunction]
pub(crate) fn record(py: Python<'_>, words: Vec<OsString>, news: i32, orders: i32) -> std::io::Result<()> {
    let path = |descriptor: i32| format!("/proc/self/fd/{descriptor}");
    let (news, orders) = (File::options().write(true).open(path(news))?, File::open(path(orders))?);
    py.detach(|| {
        let news = Arc::new(Mutex::new(news));
        let recorded = catch_unwind(AssertUnwindSafe(|| recorded(&words, &news, orders)));
        let line = match recorded {
            Ok(Ok(outcome)) => in_json(&outcome),
            Ok(Err(error)) => json!({ "error": cli::status_and_words(&error) }),
            Err(panic) => json!({ "error": status_and_words(&*panic) }),
        };
        tell(&news, &line);
    });
    Ok(())
}

fn recorded(words: &[OsString], news: &Arc<Mutex<File>>, mut orders: File) -> anyhow::Result<Outcome> {
    let mut options = cli::trace_options(words)?;
    options.interrupt = Interrupt::on_signals();
    let interrupt = options.interrupt.clone();
    std::thread::spawn(move || {
        let _ = orders.read(&mut [0]);
        // Ctrl-C in a terminal comes to this process as well, and a second one would kill the program.
        std::thread::sleep(PATIENCE);
        if !interrupt.is_asked() {
            interrupt.request();
        }
    });
    let news = Arc::clone(news);
    options.progress = Some(Arc::new(move |Progress { instructions, threads, bytes }| {
        tell(&news, &json!({ "progress": [instructions, threads, bytes] }));
    }));
    Ok(tracer::trace(&options)?)
}

/// Writes a line. If that fails, the caller is gone, which the orders say, too.
fn tell(news: &Mutex<File>, line: &Value) {
    let _ = writeln!(news.lock().unwrap_or_else(PoisonError::into_inner), "{line}");
}

fn in_json(outcome: &Outcome) -> Value {
    let failure = outcome.failure.as_ref().map(|failure| {
        let left = if matches!(failure, tracer::Error::NeverBegan { .. }) { "empty" } else { "incomplete" };
        format!("{failure}: the program ran to its end, but its trace is {left}")
    });
    json!({
        // As Python's subprocess says it.
        "returncode": match outcome.exit { Exit::Exited(status) => status, Exit::Signalled(signal) => -signal },
        "instructions": outcome.instructions,
        "threads": outcome.threads,
        "bytes": outcome.bytes,
        "seconds": outcome.times.wall.as_secs_f64(),
        "stopped_early": outcome.stopped_early,
        "warnings": outcome.warnings,
        "failure": failure,
    })
}
