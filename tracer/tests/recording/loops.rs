//! Chunks of worksharing loops: the trace says which iterations each thread was given, all of them, once each.

use std::path::Path;
use std::process::Command;

use trace_format::{Chunk, Event, Trace};

use crate::support::{all_events, compile_with, record};

/// The chunks of the loop in a function whose name begins with this.
pub(crate) fn chunks(trace: &Trace, function: &str) -> Vec<Chunk> {
    let is_of = |chunk: &Chunk| trace.symbol_of(chunk.site).is_some_and(|symbol| symbol.name.starts_with(function));
    let of = |event| if let Event::Chunk(chunk) = event { Some(chunk) } else { None };
    all_events(trace).into_iter().filter_map(of).filter(is_of).collect()
}

/// Asserts that they are the iterations from `first` on, up to before `end`, by `step`.
pub(crate) fn assert_covered(mut chunks: Vec<Chunk>, [first, end, step]: [i64; 3], about: &str) {
    assert!(!chunks.is_empty(), "{about}: no chunks");
    assert!(chunks.iter().all(|chunk| chunk.step == step || chunk.step == 0), "{about}: {chunks:?}");
    let mut all = Vec::new();
    for chunk in chunks.drain(..) {
        let (mut lower, mut upper) = (chunk.lower, chunk.upper);
        while (end - lower) * step.signum() > 0 {
            all.push((lower, if step > 0 { upper.min(end) } else { upper.max(end) }));
            if chunk.stride == 0 {
                break;
            }
            (lower, upper) = (lower + chunk.stride, upper + chunk.stride);
        }
    }
    all.sort_unstable_by_key(|(lower, _)| lower * step.signum());
    assert_eq!(all[0].0, first, "{about}: {all:?}");
    assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].0), "{about}: {all:?}");
    let behind = all[all.len() - 1].1;
    assert!((behind - end) * step.signum() >= 0 && (behind - end).abs() < step.abs(), "{about}: {all:?}");
}

pub(crate) const TRANSLATED: [&str; 3] = ["translate", "translate memory small=3", "translate cache=65536 throw=7"];

/// Records the program in each way, and hands each trace over.
pub(crate) fn recorded_in_all_ways(program: &Path, ways: &[&str], see: impl Fn(&Trace, &str)) {
    let native = Command::new(program).output().unwrap();
    for options in ways {
        let recorded = record(&format!("engine={options}"), program, &[]);
        assert_eq!(recorded.output.stdout, native.stdout, "{options}: {}", recorded.stderr());
        see(&recorded.trace(), options);
    }
}

#[test]
fn all_iterations_that_libgomp_deals_out_are_in_chunks_once_each() {
    let program = compile_with("gcc", "loops.c", &["-fopenmp"]);
    assert_judged(&program, &[], &["loop_4."], 6);
    recorded_in_all_ways(&program, &TRANSLATED, |trace, about| {
        let loops = [[0, 23, 1], [-20, 20, 3], [30, 0, -2], [0, 21, 1], [7, 40, 4], [100, 120, 5]];
        for (number, expected) in (1..).zip(loops) {
            let chunks = chunks(trace, &format!("loop_{number}."));
            assert_covered(chunks, expected, &format!("loop {number}, {about}"));
        }
        assert_covered(chunks(trace, "main."), [0, 20, 1], about);
        assert!(chunks(trace, "loop_4.").iter().any(|chunk| chunk.step == 1), "{about}: threads made the loop");
    });
}

pub(crate) fn has_libomp() -> bool {
    let arguments = ["-fopenmp=libomp", "-xc", "/dev/null", "-shared", "-o", "/dev/null"];
    let found = Command::new("clang-19").args(arguments).output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("clang-19 with libomp is missing: not tested");
    }
    found
}

/// Asserts that both engines record the same chunks, `count` of them, of loops whose parts do not depend on time.
fn assert_judged(program: &Path, arguments: &[&str], loops: &[&str], count: usize) {
    let [judge, found] = ["step", "translate"].map(|engine| {
        let trace = record(&format!("engine={engine}"), program, arguments).trace();
        let mut those: Vec<Chunk> = loops.iter().flat_map(|name| chunks(&trace, name)).collect();
        those.sort_unstable_by_key(|chunk| (chunk.site, chunk.lower));
        those
    });
    assert_eq!(judge, found);
    assert_eq!(judge.len(), count);
}

/// Needs clang-19 with its OpenMP library, which not every machine has.
#[test]
fn all_iterations_that_libomp_deals_out_are_in_chunks_once_each() {
    if !has_libomp() {
        return;
    }
    let program = compile_with("clang-19", "loops.c", &["-fopenmp=libomp"]);
    recorded_in_all_ways(&program, &TRANSLATED, |trace, about| {
        let counts = [23, 14, 15, 21, 9, 4, 20, 20];
        for (number, count) in (1..).zip(counts) {
            let chunks = chunks(trace, &format!("loop_{number}."));
            assert_covered(chunks, [0, count, 1], &format!("loop {number}, {about}"));
        }
        assert_covered(chunks(trace, "main."), [0, 20, 1], about);
    });
}

#[test]
#[ignore = "`step` takes most of a minute for the start of libomp"]
fn both_engines_record_the_same_chunks_of_libomp() {
    if has_libomp() {
        let program = compile_with("clang-19", "loops.c", &["-fopenmp=libomp"]);
        assert_judged(&program, &["static"], &["loop_7.", "loop_8."], 4);
    }
}
