//! Over the workloads and the micro programs.

use std::fs;
use std::path::PathBuf;

use crate::build;

/// The C sources of all workloads.
pub(crate) fn sources() -> Vec<PathBuf> {
    let (mut sources, mut left) = (Vec::new(), vec![build::root().join("workloads")]);
    while let Some(folder) = left.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|e| e == "c") {
                sources.push(path);
            }
        }
    }
    sources.sort();
    sources
}

#[test]
fn workloads_print_the_same_after_every_pass() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let sources = sources();
    assert!(sources.len() >= 16, "the workloads were not found: {sources:?}");
    for source in sources {
        let (bitcode, program) = (path("a.bc"), path("a"));
        let openmp: &[&str] = if source.ends_with("mandelbrot.c") { &["-fopenmp"] } else { &[] };
        build::to_bitcode(&source, &bitcode, &[&["-O3"], openmp].concat());
        build::link(&bitcode, &program, openmp);
        let expected = build::output(&program, ["-p", "4"]);
        for passes in build::pipelines() {
            let (after, program) = (path("b.bc"), path("b"));
            build::transform(&bitcode, &passes, &after);
            build::link(&after, &program, openmp);
            let got = build::output(&program, ["-p", "4"]);
            assert_eq!(got, expected, "{} after {passes}", source.display());
        }
    }
}
