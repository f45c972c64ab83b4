//! Recordings that end at a limit: the trace ends there, the program runs on.

use crate::support::{compile, record};

/// Records under a limit and gives the trace's instructions and bytes, after checking that the program reached its own
/// end.
fn limited(engine: &str, limit: &str) -> (u64, u64) {
    let program = compile("threads64.c", &["-static"]);
    let recorded = record(&format!("engine={engine} limit={limit}"), &program, &[]);
    assert_eq!((recorded.stdout().as_str(), recorded.output.status.code()), ("85344\n", Some(64)), "{limit}");
    let trace = recorded.trace();
    let finish = trace.finish().unwrap();
    assert_eq!(finish.exit_status, Some(64));
    assert!(finish.stopped_early.as_ref().is_none_or(|why| why.contains("limit")), "{finish:?}");
    let counted: u64 = trace.threads().iter().map(|thread| thread.instructions).sum();
    assert_eq!(counted, trace.instructions());
    (trace.instructions(), std::fs::metadata(&recorded.path).unwrap().len())
}

#[test]
fn instructions_are_counted_one_by_one() {
    for (limit, instructions) in [("1", 1), ("5000", 5000), ("5003", 5003), ("20K", 20_000)] {
        assert_eq!(limited("translate", limit).0, instructions, "{limit}");
    }
}

#[test]
fn what_never_reaches_its_limit_is_whole() {
    let whole = limited("translate", "1T").0;
    assert!(whole > 20_000 && limited("translate", "1TiB").0 > 20_000);
}

#[test]
fn bytes_end_the_recording_too() {
    let whole = limited("step", "1TB");
    for engine in ["step", "translate"] {
        let part = limited(engine, "10KB");
        assert!(part.0 < whole.0, "{engine}: {part:?} of {whole:?}");
        assert!(part.1 < 30_000, "{engine}: {part:?}: about 10 KB, and the tables that name what ran");
    }
}
