//! Work on a trace can be asked to end.

use trace_format::{Error, Stop, ThreadId, Trace};

#[test]
fn who_reads_on_is_stopped_and_others_are_not() {
    let trace = Trace::open("../heuristics/conformance/case-00.trace.gz".as_ref()).unwrap();
    let stop = Stop::default();
    let mut asked = trace.with_stop(&stop).stream(ThreadId(0));
    stop.ask();
    assert!(matches!(asked.next(), Err(Error::Stopped)));
    assert!(trace.stream(ThreadId(0)).next().unwrap().is_some());
}
