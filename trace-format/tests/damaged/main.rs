//! Cut, flipped and foreign files: an error that names the file, the place, the fault and the way out, or what is left.

mod cut;
mod faults;
mod foreign;
mod hostile;
mod made_chunks;
mod random;
#[path = "../random_trace/mod.rs"]
mod random_trace;
#[path = "../reader_check/mod.rs"]
mod reader_check;

use std::sync::OnceLock;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use random_trace::{Written, steps, write};
use reader_check::chunks;
use trace_format::{ThreadId, Trace};

/// A small trace with several threads and chunks, the same at every run.
pub fn small() -> &'static Written {
    static SMALL: OnceLock<Written> = OnceLock::new();
    SMALL.get_or_init(|| {
        let mut runner = TestRunner::deterministic();
        loop {
            let written = write(&steps(250).new_tree(&mut runner).unwrap().current());
            if written.threads.len() == 5
                && (2000..8000).contains(&written.bytes.len())
                && chunks(&written.bytes).len() > 12
            {
                return written;
            }
        }
    })
}

/// Opens a trace in memory.
pub fn open(bytes: &[u8]) -> trace_format::Result<Trace> {
    Trace::from_bytes(bytes.to_vec(), "cut.bin")
}

/// The error of opening a trace or of reading one of its streams. There must be one.
pub fn fault(bytes: &[u8]) -> String {
    match open(bytes) {
        Err(error) => error.to_string(),
        Ok(trace) => {
            let threads: Vec<ThreadId> = trace.threads().iter().map(|thread| thread.id).collect();
            let mut streams = threads.iter().map(|&thread| trace.stream(thread));
            let error = streams.find_map(|mut stream| {
                loop {
                    match stream.next() {
                        Ok(Some(_)) => {}
                        Ok(None) => return None,
                        Err(error) => return Some(error.to_string()),
                    }
                }
            });
            error.expect("something is wrong with the trace")
        }
    }
}
