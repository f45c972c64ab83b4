//! Programs print the same however few registers there are, and whichever allocator decides.

use std::path::Path;

use crate::build;
use crate::{generator, workloads};

const ALLOCATORS: [&str; 4] = ["linear", "div", "rem", "aff"];

/// What the values of a function became, over all functions: uses of each row of figure 6.
#[derive(Default, Debug)]
struct Rows {
    local: i64,
    constant: i64,
    uniform: i64,
    affine: i64,
    mixed: i64,
}

/// Builds a program, and again with each allocator; what these print must be what the first prints.
fn same_output(source: &Path, arguments: &[&str], registers: &[u32], loads: &[&str], rows: &mut Rows) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (bitcode, program) = (path("a.bc"), path("a"));
    let openmp: &[&str] = if source.ends_with("mandelbrot.c") { &["-fopenmp"] } else { &[] };
    build::to_bitcode(source, &bitcode, &[&["-O2", "-Wno-everything"], openmp].concat());
    build::link(&bitcode, &program, openmp);
    let expected = build::output(&program, arguments);
    for (k, allocator) in registers.iter().flat_map(|k| ALLOCATORS.map(|allocator| (k, allocator))) {
        for load in loads.iter().filter(|load| **load == "async" || ["div", "aff"].contains(&allocator)) {
            let passes = format!("spill:registers={k},allocator={allocator},loads={load},check=yes,warps=8");
            let (after, program) = (path("b.bc"), path("b"));
            for remark in build::transform(&bitcode, &passes, &after) {
                let numbers = remark.reason.numbers();
                let number = |name: &str| numbers.iter().find(|(n, _)| *n == name).map_or(0, |(_, n)| *n);
                rows.local += number("local");
                rows.constant += number("constant");
                rows.uniform += number("uniform");
                rows.affine += number("affine");
                rows.mixed += number("mixed");
            }
            build::link(&after, &program, openmp);
            assert_eq!(build::output(&program, arguments), expected, "{} after {passes}", source.display());
        }
    }
}

#[test]
fn spilled_programs_print_the_same_with_few_registers() {
    let mut rows = Rows::default();
    for source in workloads::sources().iter().filter(|s| s.ends_with("fft.c") || s.ends_with("divide.c")) {
        same_output(source, &["-p", "4"], &[4], &["async", "simt"], &mut rows);
    }
    assert!(rows.local > 100 && rows.uniform > 10 && rows.affine > 0 && rows.mixed > 0, "{rows:?}");
}

#[test]
fn spilled_random_programs_print_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("random.c");
    let mut rows = Rows::default();
    for seed in 0..3 {
        std::fs::write(&source, generator::program(seed)).unwrap();
        same_output(&source, &[], &[4], &["async"], &mut rows);
    }
    assert!(rows.local > 100, "{rows:?}");
}

/// All workloads, four numbers of registers.
#[test]
#[ignore = "takes minutes: scripts/check-spills runs it"]
fn all_workloads_print_the_same_with_every_allocator() {
    let mut rows = Rows::default();
    for source in workloads::sources() {
        same_output(&source, &["-p", "4"], &[4, 6, 8, 12], &["async", "simt"], &mut rows);
        println!("{}: {rows:?}", source.display());
    }
    for seed in 0..50 {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("random.c");
        std::fs::write(&source, generator::program(seed)).unwrap();
        same_output(&source, &[], &[2, 4, 8], &["async"], &mut rows);
    }
    println!("{rows:?}");
}
